// Package status makes the documents of the status REST API: what users asked for, what was applied, and what is really
// there, for a deployment intent group or for the network intents of a cluster; and the status of an instance as
// k8splugin answers it.
//
// ParseQuery reads the parameters of a request, Decode what the contexts in etcd say, New puts both together with what
// the hub knows of the clusters. Default documents have the shape of EMCO's status design in its published version, with
// its words; what goes beyond it, health above all, comes when it is asked for.
//
// Two rules run through it. Nothing is said to be there, or to be well, that nobody can see: then it is Unknown. And
// nothing old is said without saying so: a document carries source and last-seen for what is not current.
//
// The package decides nothing about the health of objects: members come in judged, and what is expected and missing is
// judged by healthscope.Judge like everything else. It is pure: it imports no client, logger, metrics or context and reads
// no clock. Time comes in as an argument.
package status
