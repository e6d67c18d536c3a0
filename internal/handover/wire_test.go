package handover_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	"github.com/serf-sbr/serf-sbr/internal/slot"
)

var messages = []handover.Message{
	{Kind: handover.Take, Born: math.MinInt64, Round: math.MaxUint64, Token: math.MaxInt64},
	{Kind: handover.HandOver, Born: 1, Round: 2},
	{Kind: handover.Resigned},
	{Kind: handover.Resigning, Born: math.MaxInt64},
	{Kind: handover.Clear, Wait: math.MaxInt64, State: []byte{0}},
	{Kind: handover.Running, Token: 7},
	{Kind: handover.Refuse, Wait: time.Second},
	{Kind: handover.HandedOver, Round: math.MaxUint64, Token: math.MaxInt64, Wait: math.MaxInt64, Born: math.MinInt64, State: make([]byte, slot.MaxState)},
}

func TestMessage_TravelsUnchanged(t *testing.T) {
	for _, m := range messages {
		raw := handover.AppendMessage([]byte("before"), m)
		require.LessOrEqual(t, len(raw), len("before")+slot.MaxState+60)
		got, err := handover.Decode(raw[len("before"):])
		require.NoError(t, err)
		require.Equal(t, m, got, "%v", m.Kind)
	}
}

func TestMessage_WhatCannotTravelIsLeftOut(t *testing.T) {
	got, err := handover.Decode(handover.AppendMessage(nil,
		handover.Message{Kind: handover.Clear, Wait: -1, State: make([]byte, slot.MaxState+1)}))
	require.NoError(t, err)
	require.Equal(t, handover.Message{Kind: handover.Clear}, got)
}

func TestDecode_RefusesWhatNobodyWrote(t *testing.T) {
	whole := handover.AppendMessage(nil, handover.Message{Kind: handover.Take, Born: 300, Round: 300, Token: 300,
		Wait: 300})
	for n := range whole {
		_, err := handover.Decode(whole[:n])
		require.ErrorIs(t, err, handover.ErrInvalid, "cut off after %d bytes", n)
	}
	for name, raw := range map[string][]byte{
		"no kind":        append([]byte{0}, whole[1:]...),
		"unknown kind":   append([]byte{byte(handover.Started) + 1}, whole[1:]...),
		"token":          handover.AppendMessage(nil, handover.Message{Kind: handover.Take, Token: math.MaxInt64 + 1}),
		"state too long": append(handover.AppendMessage(nil, handover.Message{Kind: handover.Take}), make([]byte, slot.MaxState+1)...),
		"endless number": append([]byte{1}, bytes.Repeat([]byte{0xff}, 20)...),
	} {
		_, err := handover.Decode(raw)
		require.ErrorIs(t, err, handover.ErrInvalid, name)
	}
}

func FuzzDecode(f *testing.F) {
	for _, m := range messages {
		f.Add(handover.AppendMessage(nil, m))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := handover.Decode(raw)
		if err != nil {
			require.ErrorIs(t, err, handover.ErrInvalid)
			require.Zero(t, m)
			return
		}
		again, err := handover.Decode(handover.AppendMessage(nil, m))
		require.NoError(t, err)
		require.Equal(t, m, again)
	})
}
