package healthscope

import (
	"math"
	"slices"
)

// Summary counts members by the state they count as.
type Summary struct {
	// Total is the number of members that count.
	Total int
	// Ready, Pending, Failed and Unknown add up to Total.
	Ready, Pending, Failed, Unknown int
	// Healthy is the number of members that are healthy: the ready ones, and the pending ones that serve.
	Healthy int
}

// Add counts one member. Owned members do not count.
func (s *Summary) Add(m Member) {
	if m.Owned {
		return
	}
	s.Total++
	switch m.Counts {
	case Ready:
		s.Ready++
	case Pending:
		s.Pending++
	case Failed:
		s.Failed++
	case Unknown, Terminating, NotPresent:
		s.Unknown++
	}
	if m.Healthy() {
		s.Healthy++
	}
}

// Summarize counts members.
func Summarize(members []Member) Summary {
	var s Summary
	for _, m := range members {
		s.Add(m)
	}
	return s
}

// State returns the worst state of the members: Failed if one is Failed, else Unknown, else Pending, else Ready. Without members it is Unknown.
func (s Summary) State() State {
	switch {
	case s.Total == 0:
		return Unknown
	case s.Failed > 0:
		return Failed
	case s.Unknown > 0:
		return Unknown
	case s.Pending > 0:
		return Pending
	default:
		return Ready
	}
}

// Health is the health of many members together.
type Health string

// The values of Health.
const (
	// Healthy means that enough members are healthy.
	Healthy Health = "healthy"
	// Unhealthy means that too few members are healthy.
	Unhealthy Health = "unhealthy"
	// HealthUnknown means that too few members are known to be healthy, but enough would be if the unknown ones were healthy. It is also the health without members.
	HealthUnknown Health = "unknown"
)

// WorseHealth returns the worse of two values: Unhealthy is worse than HealthUnknown, which is worse than Healthy.
func WorseHealth(a, b Health) Health {
	order := []Health{Healthy, HealthUnknown, Unhealthy}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// Health returns Healthy when at least percent per cent of the members, and at least one, are healthy.
// It returns HealthUnknown when only the unknown members prevent that, and when there are no members.
func (s Summary) Health(percent float64) Health {
	need := max(1, int(math.Ceil(float64(s.Total)*percent/100-1e-9)))
	switch {
	case s.Total == 0:
		return HealthUnknown
	case s.Healthy >= need:
		return Healthy
	case s.Healthy+s.Unknown >= need:
		return HealthUnknown
	default:
		return Unhealthy
	}
}
