package healthscope

import "time"

// Defaults of Policy.
const (
	// DefaultPendingTimeout is how long an object may be Pending when neither it nor the policy says otherwise. It is the default of a Deployment's progressDeadlineSeconds.
	DefaultPendingTimeout = 600 * time.Second
	// DefaultNotPresentGrace is how long an expected object may be missing before that counts as Failed.
	DefaultNotPresentGrace = 60 * time.Second
)

// Policy is the installation's policy in matters of time. The zero value judges without mercy; use DefaultPolicy.
type Policy struct {
	// PendingTimeout turns Pending into Failed, PendingTimeout, unless the workload says progressDeadlineSeconds itself. Zero means never.
	PendingTimeout time.Duration
	// NotPresentGrace is how long an expected object that is missing counts as Pending before it counts as Failed.
	NotPresentGrace time.Duration
	// FailureGrace delays Failed: for so long a failure counts as Pending.
	FailureGrace time.Duration
}

// DefaultPolicy returns the policy of an installation that says nothing.
func DefaultPolicy() Policy {
	return Policy{PendingTimeout: DefaultPendingTimeout, NotPresentGrace: DefaultNotPresentGrace}
}
