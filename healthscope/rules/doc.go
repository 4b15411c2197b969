// Package rules owns the judgement of a single Kubernetes object: the JSON of one object in, one healthscope.Result out
// (Evaluate). The monitor's bundles, the hub's caches and the command explain call it. It must never fail, never see
// another object, and never import a client, a logger, metrics or a context, nor read a clock: owners, time and policy are
// the business of healthscope.Judge.
//
// JSON comes from every version of Kubernetes, from monitors that cut parts off, and from writers that have not been
// validated. What is missing has a meaning, numbers may be written in any way JSON has, and a value that cannot be read
// makes the object Unknown.
//
// There is a rule for each kind whose health is more, or less, than its conditions. All other kinds are judged by the
// conditions and phases that most controllers write. Users' own rules go before both.
//
// Messages name no data, no environment, and nothing that looks like a secret in what a container said at its end. They
// hold no time, so that nothing changes by time alone.
package rules
