// Package bundle owns the conversion of objects to the status of a ResourceBundleState, and of a status to results. The
// monitor calls Build, with the objects, the previous status and the time; the hub calls Read and Trim, on bundles as any
// monitor writes them, including those of EMCO and of ONAP's multicloud-k8s. A bundle must never show what its readers may
// not see, so that Build redacts every object. The package never imports a client, a logger, metrics or a context, and never
// reads a clock.
package bundle
