// Package plan computes what must be done so that A&AI holds what it should:
// the difference between the documents that are desired and those that are
// there.
//
// Ownership is the heart of it. Only documents whose data-owner is ours are
// changed or deleted; of those only our fields, our labels and our
// relationships are compared and written. A label is ours when its key starts
// with the reserved prefix or is among the keys that may be copied from
// resources; every other label was put there by others and is carried
// over. A relationship is ours when a reserved label says so.
//
// The package is pure: it imports no client, logger, metrics or context and
// reads no clock. Equal inputs give equal plans, in equal order.
package plan
