package aai

import (
	"cmp"
	"net/url"
	"strings"
)

// Tenant identifies the tenant in a cloud region of A&AI that holds k8s-resources. It must exist before k8s-resources can be stored in it, because A&AI never creates parents.
type Tenant struct {
	// CloudOwner is the cloud-owner, the first part of the cloud region's key.
	CloudOwner string
	// CloudRegionID is the cloud-region-id, the second part.
	CloudRegionID string
	// TenantID is the tenant-id.
	TenantID string
}

// Path returns the tenant's path below /aai/vN, percent-encoded as A&AI requires.
func (t Tenant) Path() string {
	return path("cloud-infrastructure", "cloud-regions", "cloud-region", t.CloudOwner, t.CloudRegionID, "tenants", "tenant", t.TenantID)
}

// ResourcesPath returns the path of the container of the tenant's k8s-resources, in the same form as Path.
func (t Tenant) ResourcesPath() string { return t.Path() + "/k8s-resources" }

// Compare sorts tenants by cloud owner, region and id.
func (t Tenant) Compare(o Tenant) int {
	return cmp.Or(strings.Compare(t.CloudOwner, o.CloudOwner), strings.Compare(t.CloudRegionID, o.CloudRegionID), strings.Compare(t.TenantID, o.TenantID))
}

// String returns cloud-owner/cloud-region-id/tenant-id, for messages.
func (t Tenant) String() string { return t.CloudOwner + "/" + t.CloudRegionID + "/" + t.TenantID }

// Key identifies a k8s-resource in A&AI.
type Key struct {
	// Tenant is the tenant that holds the resource.
	Tenant Tenant
	// ID is the id of the document. It is intended to be unique in all of A&AI.
	ID string
}

// Path returns the path of the k8s-resource below /aai/vN, percent-encoded as A&AI requires.
func (k Key) Path() string { return k.Tenant.ResourcesPath() + path("k8s-resource", k.ID) }

// Compare sorts keys by tenant and id.
func (k Key) Compare(o Key) int {
	return cmp.Or(k.Tenant.Compare(o.Tenant), strings.Compare(k.ID, o.ID))
}

// path returns the escaped segments, each with a slash before it.
func path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(Escape(s))
	}
	return b.String()
}

// Escape percent-encodes a path segment or a query value in the only form that A&AI
// accepts: every character except ASCII letters, digits and -._~ as upper-case hex.
// url.PathEscape leaves more characters unescaped, which A&AI answers with 400.
func Escape(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; unreserved(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// canonicalPath returns a link in the form that Path uses: no /aai/vN prefix, canonical encoding. It does not change a segment that it cannot decode.
func canonicalPath(link string) string {
	rest := strings.TrimPrefix(link, "/")
	if below, ok := strings.CutPrefix(rest, "aai/"); ok {
		if version, path, ok := strings.Cut(below, "/"); ok && isSchemaVersion(version) {
			rest = path
		}
	}
	if rest != link && isPlain(rest) { // true for nearly every link; the byte before rest is its slash
		return link[len(link)-len(rest)-1:]
	}
	segments := strings.Split(rest, "/")
	for i, s := range segments {
		if decoded, err := url.PathUnescape(s); err == nil {
			segments[i] = Escape(decoded)
		}
	}
	return "/" + strings.Join(segments, "/")
}

// isPlain reports whether a path has no character that is encoded or should be.
func isPlain(path string) bool {
	for i := range len(path) {
		if path[i] != '/' && !unreserved(path[i]) {
			return false
		}
	}
	return true
}

// isSchemaVersion reports whether s is v followed by digits.
func isSchemaVersion(s string) bool {
	digits, ok := strings.CutPrefix(s, "v")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}
