package programs

import (
	"context"
	"errors"
	"mime"
	"net"
	"net/http"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/attach"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// startTime bounds the start of a manager, and the wait for its predecessor.
const startTime = 8 * time.Second

// Run is the handler of attach.Path.
func (h *Host) Run() http.Handler { return http.HandlerFunc(h.serve) }

func (h *Host) serve(w http.ResponseWriter, r *http.Request) {
	s := newSession(w, r)
	defer s.lose(errGoodbye)
	slot, err := h.admit(s, r)
	if err != nil {
		answer(w, err)
		return
	}
	w.Header().Set("Content-Type", attach.ContentType)
	w.Header().Set("Connection", "close")
	w.WriteHeader(http.StatusOK)
	slot.log.Info("sbr: a program is attached", "peer", r.RemoteAddr, "version", slot.attach.Version)
	s.work.Go(slot.where)
	go func() {
		<-slot.over
		s.bye(h.farewell())
	}()
	s.run(slot.received)
	slot.log.Info("sbr: a program is detached", "because", context.Cause(s.ctx))
}

// admit attaches a program: it checks the caller, reads its Attach, and starts its manager.
func (h *Host) admit(s *session, r *http.Request) (*slot, error) {
	if err := checkLocalCaller(r); err != nil {
		return nil, err
	}
	if err := s.http.EnableFullDuplex(); err != nil {
		return nil, refuse(http.StatusHTTPVersionNotSupported,
			false, "a program is attached over HTTP/1.1 or HTTP/2: %v", err)
	}
	_ = s.http.SetReadDeadline(time.Now().Add(firstLine)) // where it cannot be set that of the server holds
	m, err := s.in.Read()
	switch {
	case err != nil:
		return nil, refuse(http.StatusBadRequest, false,
			"%v: sbr run and its agent must be of the same version", err)
	case m.Attach == nil:
		return nil, refuse(http.StatusBadRequest, false, "the first line must attach a program")
	}
	if err := errors.Join(s.http.SetReadDeadline(time.Time{}),
		s.http.SetWriteDeadline(time.Time{})); err != nil {
		return nil, refuse(http.StatusInternalServerError, false, "this connection cannot stay open: %v", err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), startTime)
	defer cancel()
	slot, err := h.enter(ctx, m.Attach, s)
	if err != nil {
		return nil, err
	}
	p := h.opt.Cluster.Peers()
	s.send(attach.FromAgent{Attached: &attach.Attached{
		System: h.opt.Cluster.Config().System, Member: downing.NameOf(p.Self), Incarnation: string(p.Self),
		Patience: attach.Duration(slot.patience),
	}})
	if err := slot.attend(ctx); err != nil {
		h.log.Warn("sbr: a program cannot be attached", "singleton", m.Attach.Singleton, "error", err)
		again := !errors.Is(err, singleton.ErrLease)
		return nil, refuse(http.StatusServiceUnavailable, again, "%v", err)
	}
	return slot, nil
}

// checkLocalCaller refuses callers on other machines, and web pages.
func checkLocalCaller(r *http.Request) error {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return refuse(http.StatusForbidden, false, "programs are attached from this machine only, not from %s: run sbr run next to its agent, and give it a loopback address", r.RemoteAddr)
	}
	if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return refuse(http.StatusForbidden, false, "programs are attached by sbr run, not by a web page")
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil ||
		kind != attach.ContentType {
		return refuse(http.StatusUnsupportedMediaType, false, "a program is attached by lines of %s: use sbr run",
			attach.ContentType)
	}
	return nil
}

// taken refuses a second program for one singleton.
func (s *slot) taken() error {
	if s.session.ctx.Err() != nil {
		return refuse(http.StatusConflict, true, "singleton %s: the program that pid %d had attached is still being stopped", s.attach.Singleton, s.attach.PID)
	}
	return refuse(http.StatusConflict, false, "singleton %s: pid %d has attached a program for it, %v ago: one agent runs it once", s.attach.Singleton, s.attach.PID,
		time.Since(s.since).Round(time.Second))
}

func answer(w http.ResponseWriter, err error) {
	r, ok := errors.AsType[*attach.Refusal](err)
	if !ok {
		r = &attach.Refusal{Status: http.StatusInternalServerError, Text: err.Error()}
	}
	if r.Again {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Connection", "close") // what was sent behind the first line is not read
	http.Error(w, attach.Text(r.Text), r.Status)
}

// farewell is the Bye for a program whose session is over.
func (h *Host) farewell() attach.Bye {
	select {
	case <-h.opt.Cluster.Downed():
		return attach.Bye{Why: "this member was downed", Exit: downing.ExitDowned}
	case <-h.opt.Cluster.Left():
		return attach.Bye{Why: "this member has left its cluster"}
	default:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leaving {
		return attach.Bye{Why: "the agent leaves its cluster"}
	}
	return attach.Bye{Why: "detached"}
}

// Singletons lists the singletons with a program here, by name.
func (h *Host) Singletons() []downing.SingletonStatus {
	list := []downing.SingletonStatus{}
	for _, s := range h.all() {
		st := s.manager.Status()
		e := downing.SingletonStatus{
			Name: s.attach.Singleton, Phase: st.Phase, Token: st.Token, WaitingFor: st.WaitingFor,
			LeaseHolder: st.LeaseHolder, Attached: s.session.ctx.Err() == nil, PID: s.attach.PID,
			Last: st.Last,
		}
		if e.WaitingFor == nil {
			e.WaitingFor = []string{}
		}
		if st.Margin > 0 {
			e.Margin = st.Margin.String()
		}
		if l := s.manager.Locator(); l != nil {
			at := l.Location()
			e.Holder, e.HolderToken = at.Name, at.Token
			peers := h.opt.Cluster.Peers()
			p := peers.Find(at.ID)
			e.HolderUnreachable = p != nil && p.Unreachable
		}
		list = append(list, e)
	}
	return list
}
