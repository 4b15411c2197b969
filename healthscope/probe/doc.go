// Package probe decides all there is to decide about HTTP probes of Services: what a scope asks for, which port of a Service
// is probed, when, what an answer says, and what many answers come to.
//
// It is pure. Package controllers/probe sends the requests.
package probe
