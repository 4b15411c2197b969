package fleet

import "slices"

// RejectedSecret is a Secret of a cluster that cannot have the name that it asks for, so that the hub has no cluster for it.
type RejectedSecret struct {
	// Name is the name of the Secret.
	Name string `json:"name"`
	// Message says why it is rejected.
	Message string `json:"message"`
}

// RejectedSecrets returns the Secrets that are rejected, the oldest first.
func (v *View) RejectedSecrets() []RejectedSecret {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.Clone(v.rejected)
}

// setRejected notes which Secrets are rejected.
func (v *View) setRejected(rejected []RejectedSecret) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !slices.Equal(v.rejected, rejected) {
		v.rejected = rejected
		v.changed(Clusters, RejectionChange{})
	}
}
