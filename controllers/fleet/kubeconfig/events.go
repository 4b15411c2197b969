package kubeconfig

import "encoding/binary"

// jsonEventLimiter limits the size of each JSON object of a stream. It does not detect invalid
// JSON: the decoder does, before it needs more memory.
type jsonEventLimiter struct {
	limit, size       int64
	depth             int
	inString, escaped bool
}

func (*jsonEventLimiter) events() {}

func (e *jsonEventLimiter) add(read []byte) error {
	for _, c := range read {
		if e.size++; e.size > e.limit {
			return tooLarge("event", e.limit)
		}
		switch {
		case e.escaped:
			e.escaped = false
		case e.inString:
			e.escaped, e.inString = c == '\\', c != '"'
		case c == '"':
			e.inString = true
		case c == '{' || c == '[':
			e.depth++
		case c == '}' || c == ']':
			if e.depth--; e.depth <= 0 {
				e.depth, e.size = 0, 0
			}
		}
	}
	return nil
}

// lengthSize is the size in bytes of the big-endian length that precedes an event in protobuf
// (k8s.io/apimachinery/pkg/util/framer, NewLengthDelimitedFrameWriter).
const lengthSize = 4

// protobufEventLimiter limits the size of each event of a stream in which a length precedes each event.
type protobufEventLimiter struct {
	limit, remaining int64
	length           []byte
}

func (*protobufEventLimiter) events() {}

func (e *protobufEventLimiter) add(read []byte) error {
	for len(read) > 0 {
		if e.remaining > 0 {
			n := min(e.remaining, int64(len(read)))
			e.remaining, read = e.remaining-n, read[n:]
			continue
		}
		n := min(lengthSize-len(e.length), len(read))
		e.length, read = append(e.length, read[:n]...), read[n:]
		if len(e.length) < lengthSize {
			return nil
		}
		e.remaining, e.length = int64(binary.BigEndian.Uint32(e.length)), e.length[:0]
		if e.remaining > e.limit {
			return tooLarge("event", e.limit)
		}
	}
	return nil
}
