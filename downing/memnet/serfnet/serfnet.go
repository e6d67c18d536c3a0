package serfnet

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"strconv"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing/memnet"
)

// Start runs a Serf node on the host name of network. It joins no other node.
//
// mutate, if not nil, may change the configuration before the node is created:
//
//   - LogOutput (io.Discard beforehand) receives the log of Serf and memberlist, each line headed by the
//     node's name. A writer that several nodes share must be safe for concurrent use. Logger, if set, is
//     used instead.
//   - MemberlistConfig may be changed or replaced, for instance by memberlist.DefaultLocalConfig(). Its
//     Transport, if set, is used: that is how a restart gets another address (memnet.Network.TransportAt).
//     EnableCompression is switched off: it would take a third of the processor's time, and the network
//     carries any size in the same time.
//   - NodeName is name beforehand. A node that is called differently on each start is still the same host
//     to the network.
//
// The node's Shutdown ends its transport as well; then name can be started again.
func Start(network *memnet.Network, name string, mutate func(*serf.Config)) (*serf.Serf, error) {
	conf := serf.DefaultConfig()
	conf.Init()
	conf.NodeName = name
	conf.LogOutput = io.Discard
	if mutate != nil {
		mutate(conf)
	}
	conf.MemberlistConfig.EnableCompression = false
	shareLogger(conf)
	if conf.MemberlistConfig.Transport == nil {
		transport, err := network.Transport(name)
		if err != nil {
			return nil, err
		}
		conf.MemberlistConfig.Transport = transport
	}
	node, err := serf.Create(conf)
	if err != nil {
		return nil, errors.Join(
			fmt.Errorf("serfnet: start %q: %w", name, err),
			conf.MemberlistConfig.Transport.Shutdown())
	}
	return node, nil
}

// shareLogger gives Serf and memberlist one logger: two on the same writer would write to it at the same
// time.
func shareLogger(conf *serf.Config) {
	if conf.Logger == nil {
		out := conf.LogOutput
		if out == nil {
			out = io.Discard
		}
		conf.Logger = log.New(out, conf.NodeName+" ", log.Lmicroseconds)
	}
	conf.LogOutput = nil
	if conf.MemberlistConfig.Logger == nil {
		conf.MemberlistConfig.Logger = conf.Logger
	}
	conf.MemberlistConfig.LogOutput = nil
}

// StartAll starts a node for each name, in this order, and joins each to the first, which takes as long as
// a few dials. mutate, if not nil, is called for each with its name. The nodes are returned in the order of
// names, each of them joined; that all know all takes gossip a moment longer. On an error none is left
// running.
func StartAll(network *memnet.Network, mutate func(name string, conf *serf.Config), names ...string) (
	[]*serf.Serf, error) {
	var nodes []*serf.Serf
	for _, name := range names {
		node, err := Start(network, name, func(conf *serf.Config) {
			if mutate != nil {
				mutate(name, conf)
			}
		})
		if err == nil {
			nodes = append(nodes, node)
			err = join(node, nodes[0])
		}
		if err != nil {
			return nil, errors.Join(err, ShutdownAll(nodes...))
		}
	}
	return nodes, nil
}

func join(node, first *serf.Serf) error {
	if node == first {
		return nil
	}
	at := first.LocalMember()
	addr := net.JoinHostPort(at.Addr.String(), strconv.Itoa(int(at.Port)))
	if _, err := node.Join([]string{addr}, false); err != nil {
		return fmt.Errorf("serfnet: join %q: %w", node.LocalMember().Name, err)
	}
	return nil
}

// ShutdownAll shuts all nodes down, without a leave: to each other they have crashed. Nodes that are down
// already are no error.
func ShutdownAll(nodes ...*serf.Serf) error {
	var errs []error
	for _, node := range nodes {
		errs = append(errs, node.Shutdown())
	}
	return errors.Join(errs...)
}
