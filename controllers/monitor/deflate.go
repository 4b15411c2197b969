package monitor

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"sync"
)

// deflaters and inflaters are used again: each has tables that are larger than what it works on.
var (
	deflaters = sync.Pool{New: func() any {
		w, err := flate.NewWriter(io.Discard, flate.BestSpeed)
		if err != nil {
			panic(fmt.Sprintf("cannot compress at level %d: %v", flate.BestSpeed, err)) // There is this level.
		}
		return w
	}}
	inflaters = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)) }}
)

// deflate compresses a text.
func deflate(text []byte) ([]byte, error) {
	w := deflaters.Get().(*flate.Writer) //nolint:forcetypeassert // Nothing else is in the pool.
	defer deflaters.Put(w)
	var out bytes.Buffer
	w.Reset(&out)
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(out.Bytes()), nil
}

// inflate is the opposite of deflate.
func inflate(deflated []byte) ([]byte, error) {
	r := inflaters.Get().(io.ReadCloser) //nolint:forcetypeassert // Nothing else is in the pool.
	defer inflaters.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(deflated), nil); err != nil { //nolint:forcetypeassert // Promised by package flate.
		return nil, err
	}
	return io.ReadAll(r)
}
