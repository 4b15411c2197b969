package fleet

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// same reports whether two bundles are the same to all who read them.
func same(a, b *Bundle) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UID == b.UID && a.App == b.App && a.Own == b.Own && a.Lost == b.Lost && a.Outdated.Equal(b.Outdated) && a.Unlisted == b.Unlisted && a.Observed == b.Observed && a.Truncated == b.Truncated &&
		slices.Equal(a.Malformed, b.Malformed) && maps.Equal(a.Labels, b.Labels) &&
		slices.EqualFunc(a.Members, b.Members, sameMember)
}

// sameWrite reports whether two bundles are the same ResourceBundleState in the same version, and both Lost or neither.
func sameWrite(a, b *Bundle) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UID == b.UID && a.ResourceVersion == b.ResourceVersion && a.Lost == b.Lost
}

func sameMember(a, b healthscope.Member) bool {
	if !a.Since.Equal(b.Since) || !sameProgress(a.Progress, b.Progress) {
		return false
	}
	a.Since, b.Since, a.Progress, b.Progress = time.Time{}, time.Time{}, nil, nil
	return reflect.DeepEqual(a, b)
}

func sameProgress(a, b *healthscope.Progress) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}
