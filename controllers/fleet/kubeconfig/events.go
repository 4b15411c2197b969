package kubeconfig

import "encoding/binary"

// jsonEvents bounds the JSON objects of a stream. It need not notice what is no
// JSON: the decoder does, before it needs memory for more.
type jsonEvents struct {
	limit, size       int64
	depth             int
	inString, escaped bool
}

func (*jsonEvents) events() {}

func (e *jsonEvents) add(read []byte) error {
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

// lengthSize is the size in bytes of the length that goes before an event in protobuf, big endian
// (k8s.io/apimachinery/pkg/util/framer, NewLengthDelimitedFrameWriter).
const lengthSize = 4

// protobufEvents bounds the events of a stream in which each has its length before it.
type protobufEvents struct {
	limit, left int64
	length      []byte
}

func (*protobufEvents) events() {}

func (e *protobufEvents) add(read []byte) error {
	for len(read) > 0 {
		if e.left > 0 {
			n := min(e.left, int64(len(read)))
			e.left, read = e.left-n, read[n:]
			continue
		}
		n := min(lengthSize-len(e.length), len(read))
		e.length, read = append(e.length, read[:n]...), read[n:]
		if len(e.length) < lengthSize {
			return nil
		}
		e.left, e.length = int64(binary.BigEndian.Uint32(e.length)), e.length[:0]
		if e.left > e.limit {
			return tooLarge("event", e.limit)
		}
	}
	return nil
}
