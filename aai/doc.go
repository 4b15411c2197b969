// Package aai defines the types that this project exchanges with ONAP A&AI (Active and Available Inventory): the k8s-resource
// document, its key and its relationships, and the errors of A&AI, classified by how to handle them. Its subpackages and
// controllers/inventory use it: mapping makes documents, plan compares them, client sends and reads them, and sync makes
// A&AI match them. Package aai must never do I/O, nor import anything but the standard library.
package aai
