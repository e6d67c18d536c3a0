package etcd

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Risks says what would lose a write that the cluster acknowledged, or stop it: a sentence each, with the way
// out. That members run without fsync they do not tell.
func (s *Store) Risks(ctx context.Context) (risks []string, err error) {
	list, err := s.client.MemberList(ctx)
	if err != nil {
		return nil, s.wrap(err)
	}
	voters := 0
	for _, m := range list.Members {
		if !m.IsLearner {
			voters++
		}
	}
	switch {
	case voters == 1:
		risks = append(risks, "etcd has one member: whoever loses its disk loses the verdicts, and while it is away nothing is decided: "+
			"run three, each on a machine of its own")
	case voters%2 == 0:
		risks = append(risks, fmt.Sprintf("etcd has %d members: as many may fail as with %d: add one, or remove one", voters, voters-1))
	}
	alarms, err := s.client.AlarmList(ctx)
	if err != nil {
		return risks, s.wrap(err)
	}
	for _, a := range alarms.Alarms {
		if a.Alarm == etcdserverpb.AlarmType_NOSPACE {
			risks = append(risks, fmt.Sprintf("the disk quota of member %x is used up, and no write is taken: compact, defragment, "+
				"and disarm the alarm (etcdctl alarm disarm)", a.MemberID))
		}
	}
	return risks, nil
}
