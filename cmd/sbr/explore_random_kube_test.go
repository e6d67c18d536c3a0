package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/internal/kubetest"
)

// exploreJob is what a test looks at in the manifest.
type exploreJob struct {
	Spec struct {
		CompletionMode string
		Completions    int
		Parallelism    int
		Template       struct {
			Spec struct {
				Containers []struct {
					Args []string
					Env  []struct{ Name, Value string }
				}
			}
		}
	}
}

func readExploreJob(t *testing.T) (text []byte, job exploreJob) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "kubernetes", "explore-job.yaml"))
	require.NoError(t, err)
	var any map[string]any
	require.NoError(t, yaml.Unmarshal(text, &any))
	data, err := json.Marshal(any)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &job))
	require.Len(t, job.Spec.Template.Spec.Containers, 1)
	return text, job
}

// The pods of the manifest play every seed exactly once: the number of parts that they are told is that of the Job, and the program
// takes the arguments.
func TestExploreJob_PodsPlayEverySeedOnce(t *testing.T) {
	_, job := readExploreJob(t)
	require.Equal(t, "Indexed", job.Spec.CompletionMode)
	container := job.Spec.Template.Spec.Containers[0]
	env := make(map[string]string)
	for _, e := range container.Env {
		env[e.Name] = e.Value
	}
	require.Equal(t, strconv.Itoa(job.Spec.Completions), env[envCompletions])
	require.LessOrEqual(t, job.Spec.Parallelism, job.Spec.Completions)

	seen := make(map[uint64]bool)
	for i := range job.Spec.Completions {
		env[envIndex] = strconv.Itoa(i) // what Kubernetes sets
		shard, from, err := shardOf("", func(key string) string { return env[key] })
		require.NoError(t, err)
		require.Contains(t, from, "JOB_COMPLETION_INDEX="+strconv.Itoa(i))
		for seed := range shard.Seeds(1, 1000) {
			require.False(t, seen[seed])
			seen[seed] = true
		}
	}
	require.Len(t, seen, 1000)

	require.Equal(t, []string{"explore", "random"}, container.Args[:2])
	c := newExploreRandom(streams{})
	require.NoError(t, c.ParseFlags(container.Args[2:]))
	require.Empty(t, c.Flags().Args())
	require.Equal(t, "json", c.Flag("output").Value.String(), "parts are joined")
	require.NotEqual(t, "0s", c.Flag("for").Value.String())
}

// A real API server takes the manifest as it is, field by field; and it would refuse one with a slip.
func TestExploreJob_APIServerTakesIt(t *testing.T) {
	cluster := kubetest.Shared(t)
	text, _ := readExploreJob(t)
	path := "/apis/batch/v1/namespaces/" + cluster.Namespace(t) + "/jobs?dryRun=All&fieldValidation=Strict"
	apply := func(text string) (int, string) {
		var body map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(text), &body))
		code, answer, err := cluster.Do(t.Context(), http.MethodPost, path, body)
		require.NoError(t, err)
		return code, string(answer)
	}
	code, answer := apply(string(text))
	require.Equal(t, http.StatusCreated, code, answer)
	for _, slip := range [][2]string{
		{"readOnlyRootFilesystem", "readonlyRootFilesystem"},
		{"completionMode: Indexed", "completionMode: NonIndexed"},
		{"restartPolicy: Never", "restartPolicy: Always"},
		{"operator: In, values: [1]", "operator: In, values: [0]"},
	} {
		require.Contains(t, string(text), slip[0])
		code, answer := apply(strings.Replace(string(text), slip[0], slip[1], 1))
		require.Contains(t, []int{http.StatusBadRequest, http.StatusUnprocessableEntity}, code, "%v: %s", slip, answer)
	}
}
