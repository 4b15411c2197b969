// Package rules judges single Kubernetes objects: one object in, one
// healthscope.Result out.
//
// Rules work on the bare JSON of an object, because objects come from every
// version of Kubernetes, from monitors that cut parts off, and from writers
// that nobody has checked. What is missing has a meaning, numbers may be
// written in any way JSON has, and a value that cannot be read makes the object
// Unknown, never an error.
//
// A rule sees its object alone. Owners, time and policy are the business of
// healthscope.Judge.
//
// The package is pure: it imports apimachinery, kstatus and healthscope only,
// no client, logger, metrics or context, and reads no clock.
package rules
