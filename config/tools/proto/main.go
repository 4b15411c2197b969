// Program proto generates Go code from all .proto files in a folder, and writes it into the same folder.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: proto FOLDER")
		os.Exit(2)
	}
	if err := generate(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// generate compiles the files in a folder and runs the plugins that generate Go code from them.
func generate(ctx context.Context, folder string) error {
	paths, err := filepath.Glob(filepath.Join(folder, "*.proto"))
	if err != nil {
		return err
	}
	request := &pluginpb.CodeGeneratorRequest{Parameter: proto.String("paths=source_relative")}
	for _, path := range paths {
		request.FileToGenerate = append(request.FileToGenerate, filepath.Base(path))
	}
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{folder}},
		SourceInfoMode: protocompile.SourceInfoStandard, // This includes comments.
	}
	files, err := compiler.Compile(ctx, request.FileToGenerate...)
	if err != nil {
		return fmt.Errorf("cannot compile %q: %w", folder, err)
	}
	for _, f := range files {
		request.ProtoFile = append(request.ProtoFile, protodesc.ToFileDescriptorProto(f))
	}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		if err := run(ctx, plugin, request, folder); err != nil {
			return fmt.Errorf("cannot run plugin %q: %w", plugin, err)
		}
	}
	return nil
}

// run runs a plugin, as protoc does, and writes the generated files into a folder.
func run(ctx context.Context, plugin string, request *pluginpb.CodeGeneratorRequest, folder string) error {
	input, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", plugin)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(output, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	for _, f := range response.GetFile() {
		if err := os.WriteFile(filepath.Join(folder, f.GetName()), []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
