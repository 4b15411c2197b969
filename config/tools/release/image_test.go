// Package release tests the build of releases. It builds the container image as a release does, pushes it to its own registry on
// the loopback interface, and checks the result. The tests create the base image, because the real one would have to be pulled.
package release

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const (
	root    = "../../.."
	version = "v0.0.0-check"
	program = "/ko-app/healthscope"
	carried = "/var/run/ko/"
)

var machines = map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}

func TestImage(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	dist := t.TempDir()
	pushBase(t, host+"/base:nonroot")
	runMake(t, host, "image-push", "VERSION="+version, "DIST="+dist)

	ref, err := name.NewTag(host + "/healthscope:" + version)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(ref)
	if err != nil {
		t.Fatalf("cannot pull what was pushed: %v", err)
	}
	compareReference(t, ref, index, filepath.Join(dist, "image.txt"))
	checkSBOM(t, ref, digest(t, index), "", filepath.Join(dist, "healthscope-index.spdx.json"))
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if got := manifest.Annotations["org.opencontainers.image.base.name"]; got != host+"/base:nonroot" || manifest.Annotations["org.opencontainers.image.base.digest"] == "" {
		t.Errorf("the image says that its base is %q", got)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platform := m.Platform.String()
		platforms = append(platforms, platform)
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatalf("cannot pull the image for %s: %v", platform, err)
		}
		t.Run(platform, func(t *testing.T) {
			checkConfig(t, image)
			files := filesOf(t, image)
			checkProgram(t, platform, files[program])
			checkCarried(t, files)
			checkSBOM(t, ref, m.Digest, "k8s.io/client-go", filepath.Join(dist, "healthscope-"+strings.ReplaceAll(platform, "/", "-")+".spdx.json"))
		})
	}
	if slices.Sort(platforms); !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("the image is for %q", platforms)
	}
}

// TestArchive asserts that an archive holds the image with the tag that the chart uses, for the architecture of this machine.
func TestArchive(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	dist := t.TempDir()
	pushBase(t, host+"/base:nonroot")
	runMake(t, host, "image-archive", "DIST="+dist)

	chart, err := os.ReadFile(filepath.Join(root, "charts", "healthscope", "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, tag, _ := strings.Cut(string(chart), "\nappVersion: ")
	tag, _, _ = strings.Cut(tag, "\n")
	ref, err := name.NewTag(host + "/healthscope:" + strings.Trim(tag, `"`))
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(filepath.Join(dist, "image.tar"), &ref)
	if err != nil {
		t.Fatalf("cannot read the image of the chart in the archive: %v", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != runtime.GOARCH || config.Config.User != "65532:65532" {
		t.Errorf("the image is for %q and runs as %q", config.Architecture, config.Config.User)
	}
	if len(filesOf(t, image)[program]) == 0 {
		t.Errorf("the image has no %s", program)
	}
}

// runMake runs make as a release or a user does, with the registry and the base image of the test.
func runMake(t *testing.T, host string, arguments ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory", "IMAGE=" + host + "/healthscope"}, arguments...)...)
	cmd.Dir = root
	// The test must not use the user's credentials.
	cmd.Env = append(os.Environ(), "KO_DEFAULTBASEIMAGE="+host+"/base:nonroot", "DOCKER_CONFIG="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot make the image: %v\n%s", err, out)
	}
}

// pushBase pushes a base image for each platform. Its user is root, to prove that the build sets another user.
func pushBase(t *testing.T, base string) {
	t.Helper()
	ref, err := name.ParseReference(base)
	if err != nil {
		t.Fatal(err)
	}
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	text := []byte("root:x:0:0::/root:/sbin/nologin\nnonroot:x:65532:65532::/home/nonroot:/sbin/nologin\n")
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "etc/passwd", Mode: 0o644, Size: int64(len(text))}), second(w.Write(text)), w.Close()); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	var index v1.ImageIndex = empty.Index
	for platform := range machines {
		p, err := v1.ParsePlatform(platform)
		if err != nil {
			t.Fatal(err)
		}
		image, err := mutate.AppendLayers(empty.Image, layer)
		if err != nil {
			t.Fatal(err)
		}
		image, err = mutate.ConfigFile(image, &v1.ConfigFile{OS: p.OS, Architecture: p.Architecture, Config: v1.Config{User: "0"}, RootFS: rootFS(t, image)})
		if err != nil {
			t.Fatal(err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: p}})
	}
	if err := remote.WriteIndex(ref, index); err != nil {
		t.Fatalf("cannot push the base: %v", err)
	}
}

func second(_ int, err error) error { return err }

func rootFS(t *testing.T, image v1.Image) v1.RootFS {
	t.Helper()
	c, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return c.RootFS
}

// compareReference compares the pushed index with the reference that a release signs.
func compareReference(t *testing.T, tag name.Tag, index v1.ImageIndex, file string) {
	t.Helper()
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := name.NewDigest(strings.TrimSpace(string(written)))
	if err != nil {
		t.Fatalf("what is to be signed must have a digest: %v", err)
	}
	if signed.Context() != tag.Context() || signed.DigestStr() != digest(t, index).String() {
		t.Errorf("%q would be signed; what was pushed is %s", written, digest(t, index))
	}
}

func digest(t *testing.T, index v1.ImageIndex) v1.Hash {
	t.Helper()
	d, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func checkConfig(t *testing.T, image v1.Image) {
	t.Helper()
	c, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c.Config.User != "65532:65532" {
		t.Errorf("the user is %q", c.Config.User)
	}
	if !slices.Equal(c.Config.Entrypoint, []string{program}) || len(c.Config.Cmd) > 0 {
		t.Errorf("it runs %q %q", c.Config.Entrypoint, c.Config.Cmd)
	}
	for label, want := range map[string]string{
		"org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.source": "https://github.com/healthscope/healthscope",
	} {
		if got := c.Config.Labels[label]; got != want {
			t.Errorf("the label %s is %q, want %q", label, got, want)
		}
	}
}

// filesOf returns the files of an image by path.
func filesOf(t *testing.T, image v1.Image) map[string][]byte {
	t.Helper()
	content := mutate.Extract(image)
	defer func() { _ = content.Close() }()
	files := map[string][]byte{}
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatalf("cannot read the image: %v", err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if files["/"+strings.TrimPrefix(header.Name, "/")], err = io.ReadAll(r); err != nil {
			t.Fatalf("cannot read %q in the image: %v", header.Name, err)
		}
	}
}

// checkProgram checks that the program is built for the platform, is statically linked and has no debugging information. It runs
// the program if the test runs on that platform.
func checkProgram(t *testing.T, platform string, content []byte) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		t.Fatalf("the image has no program at %s: %v", program, err)
	}
	dynamic := slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	if f.Machine != machines[platform] || dynamic || f.Section(".debug_info") != nil {
		t.Errorf("the program is for %s, dynamic: %t, with debugging information: %t", f.Machine, dynamic, f.Section(".debug_info") != nil)
	}
	t.Logf("%s: the program has %d bytes", platform, len(content))
	if platform != runtime.GOOS+"/"+runtime.GOARCH {
		return
	}
	path := filepath.Join(t.TempDir(), "healthscope")
	if err := os.WriteFile(path, content, 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), path, "version", "-o", "json").Output()
	if err != nil {
		t.Fatalf("cannot run the program: %v", err)
	}
	var said struct {
		Version, Platform string
		Libraries         map[string]string
	}
	if err := json.Unmarshal(out, &said); err != nil || said.Version != version || said.Platform != platform || said.Libraries["k8s.io/client-go"] == "" {
		t.Errorf("it says that it is %s (%v)", out, err)
	}
}

// checkCarried checks that the image contains the licences.
func checkCarried(t *testing.T, files map[string][]byte) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(files[carried+"LICENSE"], want) {
		t.Error("the licence is not in the image")
	}
	if !bytes.Contains(files[carried+"THIRD-PARTY-LICENSES"], []byte("\nk8s.io/client-go v")) {
		t.Error("the licences of others are not in the image")
	}
}

// checkSBOM checks that the SBOM beside an image lists a module, unless module is empty, and that it equals a file.
func checkSBOM(t *testing.T, ref name.Tag, of v1.Hash, module, file string) {
	t.Helper()
	tag := ref.Context().Tag(fmt.Sprintf("%s-%s.sbom", of.Algorithm, of.Hex))
	image, err := remote.Image(tag)
	if err != nil {
		t.Fatalf("there is no SBOM: %v", err)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("the SBOM has %d layers, %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	pushed, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	var sbom struct {
		SPDXVersion string `json:"spdxVersion"`
		Packages    []struct{ Name, VersionInfo string }
	}
	if err := json.Unmarshal(pushed, &sbom); err != nil || !strings.HasPrefix(sbom.SPDXVersion, "SPDX-2.") {
		t.Fatalf("the SBOM is of version %q, %v", sbom.SPDXVersion, err)
	}
	if module != "" && !slices.ContainsFunc(sbom.Packages, func(p struct{ Name, VersionInfo string }) bool { return p.Name == module && p.VersionInfo != "" }) {
		t.Errorf("none of the %d packages in the SBOM is %s", len(sbom.Packages), module)
	}
	written, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(written, pushed) {
		t.Errorf("the SBOM in the release's files is another than the one beside the image (%v)", err)
	}
}
