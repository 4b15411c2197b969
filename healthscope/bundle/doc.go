// Package bundle owns the way from objects to the status of a ResourceBundleState, and back to results. The monitor calls
// Build, with the objects, the previous status and the time; the hub calls Read and Trim, on bundles as any monitor writes
// them, those of EMCO and of ONAP's multicloud-k8s included. A bundle must never show what its readers may not see, so that
// Build strips every object itself, and the package never imports a client, a logger, metrics or a context, nor reads a clock.
package bundle
