package monitor

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// compressed is the first byte of a compressed list. No JSON begins with it.
// It is followed by the uncompressed length as a varint, and then by the compressed list.
const compressed = 0

// compress is the transform function of the cache. Of the managed fields of an object it keeps only who wrote the status and when, and it
// compresses the lists of whole objects of a bundle, because bundles take most of the memory of the cache.
func compress(object any) (any, error) {
	if o, ok := object.(client.Object); ok {
		o.SetManagedFields(writers(o.GetManagedFields()))
	}
	b, ok := object.(*k8spluginv1alpha1.ResourceBundleState)
	if !ok {
		return object, nil
	}
	for name, list := range b.Status.Lists() {
		if len(*list) == 0 || (*list)[0] == compressed {
			continue
		}
		deflated, err := deflate(*list)
		if err != nil {
			return nil, fmt.Errorf("cannot hold %s of bundle %q: %w", name, nameOfBundle(b), err)
		}
		*list = append(binary.AppendUvarint([]byte{compressed}, uint64(len(*list))), deflated...)
	}
	return b, nil
}

// writers returns the managed fields entries of the status, with only manager, operation and time.
func writers(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var kept []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if entry.Subresource == "status" {
			kept = append(kept, metav1.ManagedFieldsEntry{
				Manager: entry.Manager, Operation: entry.Operation, Time: entry.Time, Subresource: entry.Subresource,
			})
		}
	}
	return kept
}

// decompressed returns a bundle from the cache with its lists decompressed. It shares everything else with the cache.
func decompressed(cached *k8spluginv1alpha1.ResourceBundleState) (*k8spluginv1alpha1.ResourceBundleState, error) {
	b := *cached
	for name, list := range b.Status.Lists() {
		if len(*list) == 0 || (*list)[0] != compressed {
			continue
		}
		_, deflated := splitCompressed(*list)
		inflated, err := inflate(deflated)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s of bundle %q: %w", name, nameOfBundle(cached), err)
		}
		*list = inflated
	}
	return &b, nil
}

// splitCompressed returns the uncompressed length of a compressed list, and its compressed bytes.
func splitCompressed(list []byte) (length int, deflated []byte) {
	n, used := binary.Uvarint(list[1:])
	if used <= 0 {
		return 0, nil // Not a compressed list: inflate returns an error.
	}
	return int(n), list[1+used:]
}

// uncompressedSize returns the approximate size in bytes of a status without compression.
func uncompressedSize(status *k8spluginv1alpha1.ResourceBundleStateStatus) int {
	size := sizeOf(status)
	for _, list := range status.Lists() {
		if len(*list) > 0 && (*list)[0] == compressed {
			length, _ := splitCompressed(*list)
			size += length - len(*list)
		}
	}
	return size
}

// deflaters and inflaters are pools, because the tables of each are larger than the data it processes.
var (
	deflaters = sync.Pool{New: func() any {
		w, err := flate.NewWriter(io.Discard, flate.BestSpeed)
		if err != nil {
			panic(fmt.Sprintf("cannot compress at level %d: %v", flate.BestSpeed, err)) // The level is valid.
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
