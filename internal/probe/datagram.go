package probe

const (
	magic   = "sbr"
	version = 1

	kindRequest byte = 1
	kindReply   byte = 2

	nonceSize = 16
	headSize  = len(magic) + 1 + 1 + nonceSize
	maxID     = 255
)

type nonce [nonceSize]byte

// datagram is a received datagram; id points into it.
type datagram struct {
	kind  byte
	nonce nonce
	id    []byte
}

// parse accepts exactly what newRequest and appendReply write.
func parse(b []byte) (d datagram, ok bool) {
	if len(b) < headSize || string(b[:len(magic)]) != magic || b[len(magic)] != version {
		return d, false
	}
	d.kind = b[len(magic)+1]
	copy(d.nonce[:], b[len(magic)+2:])
	rest := b[headSize:]
	switch d.kind {
	case kindReply:
		return d, len(rest) == 0
	case kindRequest:
		if len(rest) < 2 || int(rest[0]) != len(rest)-1 {
			return d, false
		}
		d.id = rest[1:]
		return d, true
	default:
		return d, false
	}
}

func appendHead(b []byte, kind byte, n nonce) []byte {
	return append(append(append(b, magic...), version, kind), n[:]...)
}

func appendReply(b []byte, n nonce) []byte { return appendHead(b, kindReply, n) }

// newRequest needs an id of 1 to maxID bytes.
func newRequest(n nonce, id string) []byte {
	return append(append(appendHead(nil, kindRequest, n), byte(len(id))), id...)
}
