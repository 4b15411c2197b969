// Package rules owns the judgement of a single Kubernetes object: the JSON of one object in, one healthscope.Result out
// (Evaluate). The monitor's bundles, the hub's caches and the command explain call it. It must never fail, never see
// another object, and never import a client, a logger, metrics or a context, nor read a clock: owners, time and policy are
// the business of healthscope.Judge.
//
// JSON comes from every version of Kubernetes, from monitors that cut parts off, and from writers that have not been
// validated. What is missing has a meaning, numbers may be written in any way JSON has, and a value that cannot be read
// makes the object Unknown.
//
// There is a rule for each kind whose conditions alone do not show its health. All other kinds are judged by the
// conditions and phases that most controllers write. The rules of users take precedence over both.
//
// Messages contain no data, no environment, and nothing from a termination message that looks like a secret. They contain
// no times, so that results do not change over time alone.
package rules
