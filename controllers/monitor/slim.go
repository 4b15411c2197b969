package monitor

import (
	"encoding/binary"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// slimmed is the first byte of a list that is compressed. No JSON begins with it.
// After it comes the length of the list as a varint, and then the compressed list.
const slimmed = 0

// slim is the transformation of the cache, where bundles are most of what a
// monitor holds: it keeps of an object's managed fields who wrote its status,
// and when, and compresses the lists of whole objects of a bundle.
func slim(object any) (any, error) {
	if o, ok := object.(client.Object); ok {
		o.SetManagedFields(writers(o.GetManagedFields()))
	}
	b, ok := object.(*k8spluginv1alpha1.ResourceBundleState)
	if !ok {
		return object, nil
	}
	for name, list := range b.Status.Lists() {
		if len(*list) == 0 || (*list)[0] == slimmed {
			continue
		}
		deflated, err := deflate(*list)
		if err != nil {
			return nil, fmt.Errorf("cannot hold %s of bundle %q: %w", name, nameOfBundle(b), err)
		}
		*list = append(binary.AppendUvarint([]byte{slimmed}, uint64(len(*list))), deflated...)
	}
	return b, nil
}

// whole returns a bundle from the cache with its lists as they were. It shares
// everything else with the cache.
func whole(cached *k8spluginv1alpha1.ResourceBundleState) (*k8spluginv1alpha1.ResourceBundleState, error) {
	b := *cached
	for name, list := range b.Status.Lists() {
		if len(*list) == 0 || (*list)[0] != slimmed {
			continue
		}
		_, deflated := unslim(*list)
		inflated, err := inflate(deflated)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s of bundle %q: %w", name, nameOfBundle(cached), err)
		}
		*list = inflated
	}
	return &b, nil
}

// unslim returns how long a list was that is compressed, and the compressed list.
func unslim(list []byte) (length int, deflated []byte) {
	n, used := binary.Uvarint(list[1:])
	if used <= 0 {
		return 0, nil // No compressed list: inflate says so.
	}
	return int(n), list[1+used:]
}

// wholeSize is about how many bytes a status takes when it is whole.
func wholeSize(status *k8spluginv1alpha1.ResourceBundleStateStatus) int {
	size := sizeOf(status)
	for _, list := range status.Lists() {
		if len(*list) > 0 && (*list)[0] == slimmed {
			length, _ := unslim(*list)
			size += length - len(*list)
		}
	}
	return size
}
