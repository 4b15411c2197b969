package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/controllers/rsync/server"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// client calls methods as a program does that was generated from EMCO's files: it has EMCO's messages, and none of ours.
type client struct {
	t          *testing.T
	connection *grpc.ClientConn
	methods    map[string]protoreflect.MethodDescriptor
}

// newClient returns a client of the services at an address.
func newClient(t *testing.T, address string) *client {
	t.Helper()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	c := &client{t, connection, map[string]protoreflect.MethodDescriptor{}}
	for service, signatures := range emcos {
		methods := fileOf(t, service, signatures).Services().Get(0).Methods()
		for i := range methods.Len() {
			c.methods["/"+service+"/"+string(methods.Get(i).Name())] = methods.Get(i)
		}
	}
	return c
}

// fileOf returns EMCO's .proto file of a service.
func fileOf(t *testing.T, service string, signatures []string) protoreflect.FileDescriptor {
	t.Helper()
	file := &descriptorpb.FileDescriptorProto{Name: new(service + ".proto"), Syntax: new("proto3")}
	// add adds a message unless another method has added it, and returns its name.
	add := func(text string) *string {
		name, fields, _ := strings.Cut(strings.TrimSuffix(text, ")"), "(")
		m := &descriptorpb.DescriptorProto{Name: &name}
		for field := range strings.SplitSeq(fields, "; ") {
			f := &descriptorpb.FieldDescriptorProto{Name: new(string), Number: new(int32), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
			kind, rest, ok := strings.Cut(field, " ")
			if !ok {
				continue
			}
			*f.Name, rest, _ = strings.Cut(rest, "=")
			if _, err := fmt.Sscan(rest, f.Number); err != nil {
				t.Fatal(err)
			}
			f.Type = map[string]*descriptorpb.FieldDescriptorProto_Type{
				"string": descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), "bool": descriptorpb.FieldDescriptorProto_TYPE_BOOL.Enum(),
			}[kind]
			m.Field = append(m.Field, f)
		}
		if !slices.ContainsFunc(file.MessageType, func(known *descriptorpb.DescriptorProto) bool { return known.GetName() == name }) {
			file.MessageType = append(file.MessageType, m)
		}
		return &name
	}
	s := &descriptorpb.ServiceDescriptorProto{Name: &service}
	for _, text := range signatures {
		name, messages, _ := strings.Cut(text, " ")
		request, response, _ := strings.Cut(messages, ") ")
		response, streams := strings.CutPrefix(response, "stream ")
		s.Method = append(s.Method, &descriptorpb.MethodDescriptorProto{Name: &name, InputType: add(request), OutputType: add(response), ServerStreaming: &streams})
	}
	file.Service = append(file.Service, s)
	made, err := protodesc.NewFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// request returns the request of a method, whose fields have values in their order.
func (c *client) request(path string, values ...string) *dynamicpb.Message {
	input := c.methods[path].Input()
	m := dynamicpb.NewMessage(input)
	for i, value := range values {
		m.Set(input.Fields().ByNumber(protoreflect.FieldNumber(i+1)), protoreflect.ValueOfString(value))
	}
	return m
}

// call calls a method, and returns the response as text.
func (c *client) call(ctx context.Context, path string, values ...string) string {
	c.t.Helper()
	response := dynamicpb.NewMessage(c.methods[path].Output())
	if err := c.connection.Invoke(ctx, path, c.request(path, values...), response); err != nil {
		c.t.Fatalf("%s: %v", path, err)
	}
	return text(c.t, response)
}

// stream calls a method that responds with a stream, and returns a function that receives the next message as text.
func (c *client) stream(ctx context.Context, path string, values ...string) func() (string, error) {
	c.t.Helper()
	stream, err := c.connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, path)
	if err == nil {
		err = stream.SendMsg(c.request(path, values...))
	}
	if err == nil {
		err = stream.CloseSend()
	}
	if err != nil {
		c.t.Fatalf("%s: %v", path, err)
	}
	return func() (string, error) {
		response := dynamicpb.NewMessage(c.methods[path].Output())
		err := stream.RecvMsg(response)
		return text(c.t, response), err
	}
}

// text returns the fields of a message that are set, by number. Unknown fields fail the test.
func text(t *testing.T, m *dynamicpb.Message) string {
	t.Helper()
	if len(m.GetUnknown()) > 0 {
		t.Errorf("%s has fields that EMCO's does not: %q", m.Descriptor().FullName(), m.GetUnknown())
	}
	var all []string
	for i := range m.Descriptor().Fields().Len() {
		if f := m.Descriptor().Fields().Get(i); m.Has(f) {
			all = append(all, fmt.Sprintf("%s=%v", f.Name(), m.Get(f)))
		}
	}
	return strings.Join(all, "; ")
}

// TestAClientOfEMCOsFilesCallsEveryMethod and finds its requests in etcd. The context that the rollback was to replace is
// terminated too.
func TestAClientOfEMCOsFilesCallsEveryMethod(t *testing.T) {
	suite.NeedsControlPlane(t)
	store := newStore(t)
	c := newClient(t, serve(t, store))
	one, cluster := newContext(t, store)
	two, _ := newContext(t, store)
	three, _ := newContext(t, store)
	first, second, third := one.ID(), two.ID(), three.ID()
	for _, call := range []struct {
		path   string
		values []string
		want   string
	}{
		{"/installapp/InstallApp", []string{first}, "app_context_installed=true; app_context_install_message=the event is accepted"},
		{"/updateapp/UpdateApp", []string{first, second}, "app_context_updated=true; app_context_update_message=the event is accepted"},
		{"/updateapp/RollbackApp", []string{second, first}, "app_context_rolledback=true; app_context_rollback_message=the event is accepted"},
		{"/installapp/UninstallApp", []string{first}, "app_context_uninstalled=true; app_context_uninstall_message=the event is accepted"},
		{"/installapp/ReadAppContext", []string{third}, "app_context_read_successful=true; app_context_read_message=the event is accepted"},
		{"/installapp/UninstallApp", []string{third}, "app_context_uninstalled=true; app_context_uninstall_message=the event is accepted"},
	} {
		if got := c.call(t.Context(), call.path, call.values...); got != call.want {
			t.Errorf("%s: %s, want %s", call.path, got, call.want)
		}
	}
	for id, want := range map[string]string{
		first: "[Instantiate Update " + second + " Terminate]", second: "[Update " + first + " Terminate]", third: "[Read Terminate]",
	} {
		if got := queueOf(t, store, id); got != want {
			t.Errorf("queue %s, want %s", got, want)
		}
	}

	next := c.stream(t.Context(), "/readyNotify/Alert", "dcm", first)
	if _, err := one.AddLevelValue(t.Context(), cluster, "status", `{"ready":true}`); err != nil { // As a recorder does.
		t.Fatal(err)
	}
	if got, err := next(); err != nil || got != "appContext="+first+"; app=web; cluster=p1+edge01" {
		t.Errorf("notified of %q, error %v", got, err)
	}
	if got := c.call(t.Context(), "/readyNotify/Unsubscribe", "dcm", first); got != "" {
		t.Errorf("Unsubscribe: %s", got)
	}
	if _, err := next(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ends with %v", err)
	}
}

// newStore starts an etcd.
func newStore(t *testing.T) *appcontext.Store {
	t.Helper()
	etcd, err := controlplane.StartEtcd(t.Context(), controlplane.EtcdOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = etcd.Stop() })
	store, err := appcontext.Open(appcontext.Options{Endpoints: []string{etcd.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// serve runs the server until the test ends, and returns its address.
func serve(t *testing.T, store *appcontext.Store) string {
	t.Helper()
	s := server.New(server.Options{Address: "127.0.0.1:0", Store: store, Logger: logr.Discard(), Enqueue: func(ctx context.Context, id string, event deploy.Event, from string) error {
		return rsync.Enqueue(ctx, store, id, event, from, time.Now())
	}})
	ended := make(chan error)
	go func() { ended <- s.Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s.Addr(t.Context())
}

// newContext creates a context of one app in one cluster, without resources.
func newContext(t *testing.T, store *appcontext.Store) (ac *appcontext.AppContext, cluster appcontext.Handle) {
	t.Helper()
	ac = appcontext.NewAppContext(store)
	ac.InitAppContext()
	root, err := ac.CreateCompositeApp(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	app, err := ac.AddApp(t.Context(), root, "web")
	if err != nil {
		t.Fatal(err)
	}
	if cluster, err = ac.AddCluster(t.Context(), app, "p1+edge01"); err != nil {
		t.Fatal(err)
	}
	return ac, cluster
}

// queueOf returns the events of a context, with the contexts that updates replace.
func queueOf(t *testing.T, store *appcontext.Store, id string) string {
	t.Helper()
	s, err := store.Snapshot(t.Context(), id, deploy.LifecycleLevels()...)
	if err != nil {
		t.Fatal(err)
	}
	l, err := deploy.ReadLifecycle(s)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range l.Queue {
		all = append(all, strings.TrimSpace(string(e.Event)+" "+e.UpdateContextID))
	}
	return fmt.Sprint(all)
}
