// Package access finds out from Kubernetes who the callers of the status REST
// server and of the metrics server are and what they may ask for: a TokenReview
// for each bearer token, and a SubjectAccessReview for each thing that is asked
// for. Answers are kept for a short time, so that the API server is not asked for every request.
package access
