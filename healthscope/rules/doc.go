// Package rules judges single Kubernetes objects: one object in, one
// healthscope.Result out.
//
// A rule reads what it goes by, from the bare JSON of an object or from its Go
// type, and then decides, without regard to where the facts came from. JSON comes
// from every version of Kubernetes, from monitors that cut parts off, and from
// writers that nobody has checked. What is missing has a meaning, numbers may be
// written in any way JSON has, and a value that cannot be read makes the object
// Unknown, never an error.
//
// There is a rule for each kind whose health is more, or less, than its
// conditions. All other kinds are judged by the conditions and phases that most
// controllers write. Users' own rules go before both.
//
// Messages name no data, no environment, and nothing that looks like a secret in
// what a container said at its end; and they do not tell the time, so that
// nothing changes by time alone.
//
// A rule sees its object alone. Owners, time and policy are the business of
// healthscope.Judge.
//
// The package is pure: it imports k8s.io/api, apimachinery, kstatus and healthscope only,
// no client, logger, metrics or context, and reads no clock.
package rules
