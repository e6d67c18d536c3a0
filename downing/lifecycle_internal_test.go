package downing

import (
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// journal collects what happened, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

// lives runs a test of a lifecycle in virtual time.
func lives(t *testing.T, grace time.Duration, f func(t *testing.T, j *journal, l *lifecycle)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		f(t, j, newLifecycle(&Config{Grace: grace, Logger: slog.New(slog.DiscardHandler), Exit: func(status int) {
			if status == ExitDowned {
				j.add("exit")
			}
		}}))
	})
}

// The fact first, then the callbacks and the leave, then Done, then the exit with its status.
func TestLifecycle_OrderOfGoingDown(t *testing.T) {
	lives(t, time.Minute, func(t *testing.T, j *journal, l *lifecycle) {
		l.addDown(func(reason string) {
			require.True(t, isClosed(l.downed))
			require.False(t, isClosed(l.done))
			time.Sleep(time.Second)
			j.add("told: " + reason)
		})
		require.Empty(t, l.Reason())
		began := time.Now()
		l.Down("the reason", func(deadline time.Time) {
			require.Equal(t, began.Add(time.Minute), deadline)
			time.Sleep(2 * time.Second)
			j.add("left")
		})
		require.True(t, isClosed(l.downed), "Down returns at once, and the fact is known")
		require.Equal(t, "the reason", l.Reason())
		<-l.done
		synctest.Wait()
		require.Equal(t, []string{"told: the reason", "left", "exit"}, j.all())
		require.Equal(t, 2*time.Second, time.Since(began), "nobody waits for the grace")
	})
}

// A member goes down once. The first reason stays.
func TestLifecycle_DownTwice(t *testing.T) {
	lives(t, time.Minute, func(t *testing.T, j *journal, l *lifecycle) {
		for _, reason := range []string{"first", "second"} {
			l.Down(reason, func(time.Time) { j.add("left after " + reason) })
		}
		<-l.done
		synctest.Wait()
		require.Equal(t, "first", l.Reason())
		require.Equal(t, []string{"left after first", "exit"}, j.all())
	})
}

// Whatever hangs, callback or leave, is left behind when the grace is over.
func TestLifecycle_GraceBoundsEverything(t *testing.T) {
	for _, hangs := range []string{"callback", "leave"} {
		lives(t, 15*time.Second, func(t *testing.T, j *journal, l *lifecycle) {
			release := make(chan struct{})
			l.addDown(func(string) {
				if hangs == "callback" {
					<-release
				}
			})
			began := time.Now()
			l.Down("because", func(time.Time) {
				if hangs == "leave" {
					<-release
				}
			})
			<-l.done
			synctest.Wait()
			require.Equal(t, 15*time.Second, time.Since(began))
			require.Equal(t, []string{"exit"}, j.all())
			close(release)
		})
	}
}

// A panic in one callback, or in the leave, takes nothing from the others, nor the exit.
func TestLifecycle_Panics(t *testing.T) {
	lives(t, time.Minute, func(t *testing.T, j *journal, l *lifecycle) {
		l.addDown(func(string) { panic("one") })
		l.addDown(func(string) { j.add("two") })
		l.add(&l.onSuspend, func(string) { panic("suspend") })
		l.add(&l.onSuspend, func(string) { j.add("suspended") })
		l.Suspend("a doubt")
		synctest.Wait()
		l.Down("because", func(time.Time) { panic("leave") })
		<-l.done
		synctest.Wait()
		require.Equal(t, []string{"suspended", "two", "exit"}, j.all())
	})
}

// OnSuspend and OnResume come in the order of what happened, one at a time, and hold nobody up.
func TestLifecycle_SuspendAndResumeInOrder(t *testing.T) {
	lives(t, time.Minute, func(t *testing.T, j *journal, l *lifecycle) {
		l.add(&l.onSuspend, func(reason string) { time.Sleep(time.Minute); j.add("suspend " + reason) })
		l.add(&l.onResume, func(reason string) { j.add("resume " + reason) })
		began := time.Now()
		for _, reason := range []string{"1", "2"} {
			l.Suspend(reason)
			l.Resume(reason)
		}
		require.Equal(t, began, time.Now())
		time.Sleep(time.Hour)
		require.Equal(t, []string{"suspend 1", "resume 1", "suspend 2", "resume 2"}, j.all())
	})
}

// No work is resumed after the member is down, however late the callbacks are.
func TestLifecycle_NoResumeAfterDown(t *testing.T) {
	lives(t, time.Minute, func(t *testing.T, j *journal, l *lifecycle) {
		l.add(&l.onSuspend, func(string) { time.Sleep(10 * time.Second); j.add("suspended") })
		l.add(&l.onResume, func(string) { j.add("resumed") })
		l.Suspend("a doubt")
		synctest.Wait()
		l.Resume("none any more") // waits for the slow one
		l.Down("because", func(time.Time) {})
		l.Resume("none at all")
		<-l.done
		time.Sleep(time.Minute)
		require.NotContains(t, j.all(), "resumed")
	})
}

// A callback that is added after the fact is called at once.
func TestLifecycle_CallbackAfterTheFact(t *testing.T) {
	lives(t, time.Minute, func(t *testing.T, j *journal, l *lifecycle) {
		l.Down("because", func(time.Time) {})
		<-l.done
		l.addDown(func(reason string) { j.add("late: " + reason) })
		synctest.Wait()
		require.Contains(t, j.all(), "late: because")
	})
}
