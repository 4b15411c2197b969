// Package bundle turns objects into the status of a ResourceBundleState, and
// the status of a ResourceBundleState into results.
//
// Build is the writing side, the core of the monitor: objects, previous status
// and time in, next status out. Read and Slim are the reading side, the core of
// the hub: they take bundles as any monitor writes them, those of EMCO and of
// ONAP's multicloud-k8s included.
//
// A bundle must not become a window into what its readers may not see: Strip
// takes out what is nobody's business, and Build does so once more by itself.
//
// The package is pure: it imports apimachinery and the packages of the core
// only, no client, logger, metrics or context, and reads no clock.
package bundle
