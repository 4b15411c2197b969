// Package probe owns the decisions about HTTP probes of Services: what a scope asks for, which port of a Service is probed,
// when, what an answer says, and what many answers come to. Package controllers/probe calls it, and sends the requests. It must
// never import a client, a logger, metrics or a context, nor read a clock.
package probe
