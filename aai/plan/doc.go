// Package plan owns the difference between the documents that are desired and those that A&AI holds, as operations: Decide
// for one document, Diff for many, and a limit of deletions. Package sync calls it before each write, and the command aai plan
// by way of controllers/inventory. It must never change or delete a document of another owner, never drop a label or a
// relationship of others, and never import a client, a logger, metrics or a context, nor read a clock.
//
// Only documents whose data-owner is ours are ours; of those, our fields, our labels and our relationships are compared and
// written. A label is ours when its key starts with the reserved prefix or is among the keys that may be copied from
// resources; every other label is carried over. A relationship is ours when a reserved label says so.
//
// Equal inputs give equal plans, in equal order.
package plan
