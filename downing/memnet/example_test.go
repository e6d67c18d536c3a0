package memnet_test

import (
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/downing/memnet"
)

func Example() {
	network := memnet.New(memnet.Config{})
	n1, _ := network.Transport("n1")
	n2, _ := network.Transport("n2")
	n3, _ := network.Transport("n3")
	defer n1.Shutdown()
	defer n2.Shutdown()
	defer n3.Shutdown()

	_, _ = n1.WriteTo([]byte("hello"), n2.Addr())
	packet := <-n2.PacketCh()
	fmt.Printf("%s from %s\n", packet.Buf, packet.From)

	_ = network.Partition([]string{"n1", "n2"}, []string{"n3"})
	_, err := n1.DialTimeout(n3.Addr(), time.Millisecond)
	fmt.Println(err)

	network.Heal()
	conn, err := n1.DialTimeout(n3.Addr(), time.Millisecond)
	fmt.Println("n1 to n3:", err)
	_ = conn.Close()
	// Output:
	// hello from 10.0.0.1:7946
	// dial tcp 10.0.0.1:7946->10.0.0.3:7946: i/o timeout
	// n1 to n3: <nil>
}
