// Package plan computes the operations that turn the documents in A&AI into the desired ones: Decide for one document, Diff
// for many, and a limit on deletions. Package sync calls it before each write, and the command aai plan calls it through
// controllers/inventory. It must never change or delete a document of another owner, never drop a label or a relationship of
// another owner, and never import a client, a logger, metrics or a context, nor read a clock.
//
// A document is ours if its data-owner is ours. The package compares and writes only our fields, our labels and our
// relationships of such a document. A label is ours if its key starts with the reserved prefix or is one of the keys that may
// be copied from resources; every other label is carried over. A relationship is ours if a reserved label says so.
//
// Equal inputs give equal plans, in equal order.
package plan
