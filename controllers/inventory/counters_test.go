package inventory_test

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
)

// atomicCount is a counter for several goroutines.
type atomicCount struct{ n atomic.Int64 }

func (c *atomicCount) add()       { c.n.Add(1) }
func (c *atomicCount) get() int64 { return c.n.Load() }

// bodyOf returns the body of a request. The body can be read again afterwards.
func bodyOf(r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return ""
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return string(body)
}
