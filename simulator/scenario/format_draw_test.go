package scenario

import (
	"reflect"
	"time"

	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

// drawInto fills a block of settings: about half of its fields, most of them with what may validate.
func drawInto(t *rapid.T, path string, v reflect.Value) {
	for i := range v.NumField() {
		f, name := v.Field(i), path+"."+v.Type().Field(i).Name
		if f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[strictyaml.OnOffDuration]() {
			drawInto(t, name, f)
		} else if rapid.IntRange(0, 3).Draw(t, name+"?") == 0 {
			drawField(t, name, f)
		}
	}
}

func drawField(t *rapid.T, name string, f reflect.Value) {
	span := rapid.Map(rapid.Int64Range(1, int64(2*time.Minute)), func(n int64) time.Duration { return time.Duration(n) })
	switch f.Interface().(type) {
	case strictyaml.OnOffDuration:
		f.Set(reflect.ValueOf(rapid.SampledFrom([]strictyaml.OnOffDuration{{}, {On: true}, {For: 1}, {For: time.Hour}}).Draw(t, name)))
		return
	case *strictyaml.Span:
		s := strictyaml.Span(rapid.OneOf(span, rapid.Just(time.Duration(strictyaml.Infinite))).Draw(t, name))
		f.Set(reflect.ValueOf(&s))
		return
	case *time.Duration:
		d := span.Draw(t, name)
		f.Set(reflect.ValueOf(&d))
		return
	case time.Duration:
		f.Set(reflect.ValueOf(span.Draw(t, name)))
		return
	}
	switch {
	case f.Kind() == reflect.Bool:
		f.SetBool(rapid.Bool().Draw(t, name))
	case f.CanInt():
		f.SetInt(rapid.Int64Range(0, 9).Draw(t, name))
	case f.CanFloat():
		f.SetFloat(rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1})).Draw(t, name))
	case f.Kind() == reflect.String && name == ".ActiveStrategy":
		f.SetString(rapid.SampledFrom([]string{"keep-majority", "Keep-Oldest", "down-all"}).Draw(t, name))
	case f.Kind() == reflect.String && name == ".LeaseMajority.WhenLeaseUnknown":
		f.SetString("suspend")
	case f.Kind() == reflect.String && name == ".Kubernetes.API":
		f.SetString("akka")
	case f.Kind() == reflect.String:
		f.SetString(rapid.String().Draw(t, name))
	default:
		panic("a new kind of setting: " + name)
	}
}

func drawTexts(t *rapid.T) []string { return rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "texts") }

// drawTime is a time, or a range that begins with it.
func drawTime(t *rapid.T, from time.Duration) *Time {
	at := Exactly(from)
	if rapid.Bool().Draw(t, "range") {
		at.Spread = time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "spread"))
	}
	return at
}

func drawStep(t *rapid.T) (st Step) {
	at := time.Duration(rapid.Int64Range(0, int64(1000*time.Second)).Draw(t, "at"))
	st.At = drawTime(t, at)
	a := rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(t, "node")
	length := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "for"))
	b := "n1"
	if a == b {
		b = "n2"
	}
	switch rapid.IntRange(0, 17).Draw(t, "action") {
	case 0:
		st.Partition = &[][]string{{a}, {b}}
	case 1:
		st.Cut = &[]string{a, b}
	case 2:
		st.CutOneWay = &[]string{a, b}
	case 3:
		yes := true
		st.Heal = &yes
	case 4:
		st.Crash = &a
	case 5:
		st.Restart = &a
	case 6:
		st.Leave = &a
	case 7:
		x := rapid.StringMatching(`[x-z0-9._-]{1,3}`).Draw(t, "join")
		st.Join = &x
	case 8:
		st.Pause, st.For = &a, drawTime(t, length)
	case 9:
		skew, rate := length-30*time.Minute, rapid.Float64Range(0.01, 100).Draw(t, "rate")
		st.Clock = &Clock{Node: a, Skew: &skew, Rate: &rate}
	case 10:
		st.ForceLeave, st.On = &[]string{a}, &[]string{b}
	case 11:
		whole, none := 1.0, 0.0
		if st.Link, st.Loss = &([]string{a, b}), &whole; rapid.Bool().Draw(t, "heals") {
			st.Loss, st.Latency = &none, new(time.Duration)
		}
	case 12:
		other, lost := "m1", stateLost
		if st.Restart = &a; rapid.Bool().Draw(t, "as") {
			st.As = &other
		} else {
			st.State = &lost
		}
	case 13:
		word := none
		st.Rights, st.Nodes, st.For = &word, &[]string{a}, drawTime(t, length)
	case 14:
		then := at / 2
		if st.LeaseStore = (&StoreFault{Change: StoreChange{Restore: &then}}); rapid.Bool().Draw(t, "forget") {
			st.LeaseStore = &StoreFault{Kind: faultForget}
		}
	case 15:
		st.Down, st.By = &a, &b
	default:
		drawFault(t, &st, a, length)
	}
	return st
}

func drawFault(t *rapid.T, st *Step, node string, length time.Duration) {
	st.LeaseStore = &StoreFault{Kind: rapid.SampledFrom([]string{"", faultDown, faultLoseRequests, faultLoseResponses, faultConflict}).Draw(t, "fault")}
	if st.LeaseStore.Kind == "" {
		st.LeaseStore.Change.Slow = &length
	}
	if rapid.Bool().Draw(t, "all") {
		st.Nodes = &[]string{node}
	}
	if rapid.Bool().Draw(t, "forever") {
		st.For = drawTime(t, length)
	}
}

func drawExpect(t *rapid.T) (e Expect) {
	names := rapid.SampledFrom([][]string{{}, {"n1"}, {"n1", "n2"}})
	if rapid.Bool().Draw(t, "survivors?") {
		x := names.Draw(t, "survivors")
		e.Survivors = &x
	}
	if rapid.Bool().Draw(t, "one of?") {
		x := rapid.SliceOfN(names, 1, 3).Draw(t, "one of")
		e.SurvivorsOneOf = &x
	}
	if rapid.Bool().Draw(t, "count?") {
		x := rapid.IntRange(0, 3).Draw(t, "count")
		e.SurvivorCount = &x
	}
	if rapid.Bool().Draw(t, "down?") {
		x := names.Draw(t, "down")
		e.Down = &x
	}
	if rapid.Bool().Draw(t, "holder?") {
		x := rapid.SampledFrom([]string{none, "n1"}).Draw(t, "holder")
		e.LeaseHolder = &x
	}
	if rapid.Bool().Draw(t, "within?") {
		x := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "within"))
		e.ResolvedWithin = &x
	}
	e.Decisions = rapid.MapOfN(rapid.SampledFrom([]string{"n1", "n2"}), rapid.SampledFrom(kinds()), 0, 2).Draw(t, "decisions")
	return e
}
