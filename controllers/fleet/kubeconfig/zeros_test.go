package kubeconfig

import (
	"bytes"
	"compress/gzip"
	"testing"
)

// zeros returns zeros, compressed.
func zeros(t testing.TB, size int) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := gzip.NewWriter(&buffer)
	if _, err := w.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}
