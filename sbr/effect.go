package sbr

// Effect is something the resolver wants done. The driver carries effects out in order and reports back with
// events. None of them needs to succeed at once for the resolver to stay safe.
type Effect interface{ effect() }

// The effects.
type (
	// ReadLease asks for the record. Answer with LeaseRead.
	ReadLease struct{ Attempt uint64 }

	// AcquireLease asks for one conditional write of the verdict, together with this member as the holder,
	// over the record whose token is Base and whose verdict BaseBy has written. TakeOver names a living
	// holder of this side that may be replaced. Answer with LeaseAnswer.
	AcquireLease struct {
		Attempt  uint64
		Verdict  Verdict
		Base     uint64
		BaseBy   ID
		TakeOver []ID
	}

	// RestoreVerdict asks to write a verdict back into a store that went backwards: by one conditional write,
	// if the store holds an older verdict or none. The lease has no holder then. Answer with LeaseRead: what
	// the store holds.
	RestoreVerdict struct {
		Attempt uint64
		Verdict Verdict
	}

	// ReleaseLease gives the lease back; the verdict stays in it. Answer with LeaseReleased.
	ReleaseLease struct{ Attempt uint64 }

	// RecordLeave asks to record beside the verdict with this token, by one conditional write, that members
	// have left in peace, this one among them: Verdict.Leave. Nothing that comes of it changes what this
	// member does.
	RecordLeave struct {
		Token      uint64
		Gone, Here []ID
	}

	// TellVerdict passes the verdict on to the targets until each of them has answered, or a bound has
	// passed.
	TellVerdict struct {
		Targets []ID
		Verdict Verdict
	}

	// TellOrder passes an order on, in the same way.
	TellOrder struct {
		Targets []ID
		Order   Order
	}

	// AskToRace asks the targets to race in this member's place. Suspects are those that it cannot reach.
	// With Contact it answers that: this member has contact with the store, so its side need not be given up.
	AskToRace struct {
		Targets, Suspects []ID
		Contact           bool
	}

	// AskStanding asks all members what they know against this one. They answer Told, Ordered or Cleared.
	AskStanding struct{}

	// Remove removes members from the cluster, each only if the cluster still calls it failed at that moment.
	Remove struct{ IDs []ID }

	// Suspend stops new work: a partition may be under way.
	Suspend struct{ Reason string }

	// Resume undoes Suspend.
	Resume struct{ Reason string }

	// AnswerDownRequest answers DownRequested. Granted: the member is downed. Held: nothing was written, and
	// nothing will be. Unknown: a write has no answer, so the verdict may exist or come into existence.
	AnswerDownRequest struct {
		ID      ID
		Outcome Outcome
		Text    string
	}

	// DownSelf downs this member. It is the last effect a resolver ever returns.
	DownSelf struct{ Reason string }

	// Explain carries the sentence that explains what the resolver just did, for people.
	Explain struct {
		What Topic
		Text string
		// Decision is set when What is TopicDecision.
		Decision *Decision
	}
)

func (ReadLease) effect()         {}
func (AcquireLease) effect()      {}
func (RestoreVerdict) effect()    {}
func (ReleaseLease) effect()      {}
func (RecordLeave) effect()       {}
func (TellVerdict) effect()       {}
func (TellOrder) effect()         {}
func (AskToRace) effect()         {}
func (AskStanding) effect()       {}
func (Remove) effect()            {}
func (Suspend) effect()           {}
func (Resume) effect()            {}
func (AnswerDownRequest) effect() {}
func (DownSelf) effect()          {}
func (Explain) effect()           {}

// Topic says what a sentence is about, so that observers can filter.
type Topic string

// The topics.
const (
	TopicArmed    Topic = "armed"
	TopicDecision Topic = "decision"
	TopicLease    Topic = "lease"
	TopicVerdict  Topic = "verdict"
	TopicHealed   Topic = "healed"
	TopicIgnored  Topic = "ignored"
	TopicPaused   Topic = "paused"
	// TopicTiming: stable-after is another one for the size that the cluster has now.
	TopicTiming Topic = "timing"
	// TopicBackwards: the store holds less than it did. TopicConflict: two verdicts have one token.
	TopicBackwards Topic = "store-backwards"
	TopicConflict  Topic = "verdict-conflict"
)
