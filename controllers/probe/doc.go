// Package probe owns the HTTP probes that scopes specify: it finds Services by watches, and probes each through
// services/proxy of the API server of its cluster, on the fleet's connection to it. Package app sets it up,
// and the scope controller reads its reports through an interface of its own. It must never connect to a target itself,
// so that the API server audits every probe and lets it reach pods of the Service's namespace only.
//
// Package healthscope/probe decides what a probe requests, when it is due and what its answer means. Of the other controllers this
// package may import fleet only.
package probe
