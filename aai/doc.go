// Package aai owns the words in which this project speaks with ONAP A&AI (Active and Available Inventory): the k8s-resource
// document, its key and its relationships, and the errors of A&AI by what to do about them. The packages below it and
// controllers/inventory use it: mapping makes documents, plan compares them, client carries them, sync keeps A&AI equal to
// them. It must never do I/O, nor import anything but the standard library.
package aai
