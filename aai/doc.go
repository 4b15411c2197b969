// Package aai holds the words in which this project speaks with ONAP A&AI
// (Active and Available Inventory): the k8s-resource document, its place and
// its relationships, and the errors of A&AI sorted by what to do about them.
//
// It exists so that the packages below it agree: mapping makes documents, plan
// compares them, client carries them, sync keeps A&AI equal to them.
//
// The package is pure: it imports the standard library only, and does no I/O.
package aai
