package downing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/memberlist"

	"github.com/serf-sbr/serf-sbr/downing/talk"
)

// offering is what this member offers. Loop only.
type offering struct {
	topics  map[string]struct{}
	waiting []waiting // for the tags that are to be set
	made    uint64    // how many changes there were
	// writing: the tags are being set; again: once more after that; failed: they could not be set.
	writing, again, failed bool
}

// waiting is somebody who wants to know when a change was set.
type waiting struct {
	made uint64
	done chan<- error
}

// Offer implements host.
func (e *engine) Offer(ctx context.Context, topic string, on bool) error {
	if err := talk.CheckTopic(topic); err != nil {
		return fmt.Errorf("downing: %w", err)
	}
	if !e.talk.takesPart() {
		return fmt.Errorf("%w: this member is not started, down, or stopped", ErrNotMember)
	}
	done := make(chan error, 1)
	e.inbox.Post(func() { e.offer(topic, on, done) })
	select {
	case err := <-done:
		return err
	case <-e.looped:
		select {
		case err := <-done:
			return err
		default:
			return fmt.Errorf("%w: this member is down, has left, or was stopped", ErrNotMember)
		}
	case <-ctx.Done():
		return fmt.Errorf("downing: the topic %s is not told to the others yet: %w", topic, ctx.Err())
	}
}

// offer changes what is offered. done has room for the one answer.
func (e *engine) offer(topic string, on bool, done chan<- error) {
	o := &e.offering
	if e.leaving {
		done <- fmt.Errorf("%w: this member leaves", ErrNotMember)
		return
	}
	topics := maps.Clone(o.topics)
	if on {
		if topics == nil {
			topics = make(map[string]struct{})
		}
		topics[topic] = struct{}{}
	} else {
		delete(topics, topic)
	}
	tags := withServes(e.tags, topics)
	has, _ := e.nodeTags()
	all := withTags(has, tags)
	if n := tagBytes(all) + reserve(all); on && n > memberlist.MetaMaxSize {
		done <- fmt.Errorf("%w: with %s they take %d bytes, and Serf allows %d", ErrTagsFull, topic, n, memberlist.MetaMaxSize)
		return
	}
	o.topics, e.tags = topics, tags
	o.made++
	o.waiting = append(o.waiting, waiting{made: o.made, done: done})
	e.setTags()
}

// withServes returns this member's tags with the topics that it offers.
func withServes(tags map[string]string, topics map[string]struct{}) map[string]string {
	tags = maps.Clone(tags)
	if len(topics) == 0 {
		delete(tags, TagServes)
	} else {
		tags[TagServes] = strings.Join(slices.Sorted(maps.Keys(topics)), ",")
	}
	return tags
}

// nodeTags are those of this member's node, as Serf lists them.
func (e *engine) nodeTags() (tags map[string]string, listed bool) {
	list, _ := e.node.members()
	for i := range list {
		if list[i].Name == e.self.Name {
			return list[i].Tags, true
		}
	}
	return nil, false
}

// setTags sets the tags of this member's node beside the loop, one write at a time: what comes up meanwhile is in the next. Loop only.
func (e *engine) setTags() {
	o := &e.offering
	o.again = o.writing
	if o.writing || e.leaving {
		return
	}
	has, listed := e.nodeTags()
	if !listed {
		e.tagsSet(o.made, errors.New("downing: the node does not list itself, so its tags cannot be set"))
		return
	}
	o.writing, e.tagging = true, true
	made, tags := o.made, withTags(has, e.tags)
	e.spawn(&e.workers, func() {
		err := e.node.tag(tags)
		if err != nil {
			e.log.Error("sbr: the tags of this member could not be set", "error", err)
		}
		e.inbox.Post(func() { e.tagsSet(made, err) })
	})
}

// tagsSet follows a write of the tags.
func (e *engine) tagsSet(made uint64, err error) {
	o := &e.offering
	o.writing, o.failed = false, err != nil
	o.waiting = slices.DeleteFunc(o.waiting, func(w waiting) bool {
		if w.made <= made {
			w.done <- err
		}
		return w.made <= made
	})
	e.tagged()
	if o.again {
		e.setTags()
	}
}

// withdraw takes back what this member offers once its loop has ended: nobody answers any more. Beside an agent all of its tags are taken back.
func (e *engine) withdraw() {
	n, ok := e.node.(*embedded)
	if !ok || len(e.offering.topics) == 0 || e.leaving || e.life.isOver() || isDone(n) {
		return
	}
	has, listed := e.nodeTags()
	if !listed {
		return
	}
	if err := n.tag(withServes(withTags(has, e.tags), nil)); err != nil {
		e.log.Debug("sbr: the tag of what this member offers could not be taken back", "error", err)
	}
}
