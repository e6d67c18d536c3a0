package fence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/internal/folder"
)

// openFence opens the file at path and a Fence over it.
func openFence(t *testing.T, path string) (*File, *Fence) {
	t.Helper()
	file, err := OpenFile(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	f, err := Open(file)
	require.NoError(t, err)
	return file, f
}

func TestFile_RemembersAcrossRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "orders.fence")
	for _, token := range []uint64{1, 2, 3, 10, 9_000_000_000, Max} {
		file, f := openFence(t, path)
		require.NoError(t, f.Check(t.Context(), token))
		require.NoError(t, file.Close())
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("%d\n", token), string(text))

		file, f = openFence(t, path)
		require.Equal(t, token, f.Newest())
		if token > 1 {
			require.ErrorIs(t, f.Check(t.Context(), token-1), ErrStale)
		}
		require.NoError(t, f.Check(t.Context(), token))
		require.NoError(t, file.Close())
	}
}

// Whatever is not a token and a newline is an error that names the file. A file that was cut off anywhere is
// among that.
func TestFile_ADamagedFileIsNeverZero(t *testing.T) {
	path := filepath.Join(t.TempDir(), "orders.fence")
	for _, text := range []string{
		"", "\n", "1", "12345", "0\n", "01\n", "1\n\n", "1\r\n", " 1\n", "-1\n", "1\n2\n", "1\n2", "\x00\x00", "9223372036854775808\n",
		fmt.Sprintf("%0100d\n", 7), "1\n" + fmt.Sprintf("%0100d", 7),
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		file, err := OpenFile(path)
		require.NoError(t, err)
		_, err = Open(file)
		require.ErrorIs(t, err, ErrDamaged, "%q", text)
		require.ErrorContains(t, err, path)
		require.NotContains(t, err.Error(), "\n")
		require.NoError(t, file.Close())
	}
	rapid.Check(t, func(t *rapid.T) {
		whole := Format(rapid.Uint64Range(1, Max).Draw(t, "token")) + "\n"
		require.NoError(t, os.WriteFile(path, []byte(whole[:rapid.IntRange(0, len(whole)-1).Draw(t, "cut")]),
			0o644))
		_, err := (&File{path: path}).Load()
		require.ErrorIs(t, err, ErrDamaged)
	})
}

func TestFile_WhatCannotBeReadIsAnError(t *testing.T) {
	dir := t.TempDir()
	_, err := OpenFile(filepath.Join(dir, "absent", "orders.fence"))
	require.ErrorIs(t, err, os.ErrNotExist, "a directory that is away may be a disk that is not mounted")
	require.ErrorContains(t, err, "absent")

	require.NoError(t, os.Mkdir(filepath.Join(dir, "orders.fence"), 0o755))
	file, err := OpenFile(filepath.Join(dir, "orders.fence"))
	require.NoError(t, err)
	defer file.Close()
	_, err = Open(file)
	require.ErrorContains(t, err, "orders.fence")
}

func TestFile_OneAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "orders.fence")
	file, f := openFence(t, path)
	_, err := OpenFile(path)
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, path)

	require.NoError(t, f.Check(t.Context(), 1))
	require.NoError(t, file.Close())
	require.NoError(t, file.Close())
	_, next := openFence(t, path)
	require.NoError(t, next.Check(t.Context(), 2))
	require.ErrorIs(t, f.Check(t.Context(), 3), os.ErrClosed, "it is somebody else's now")
	require.EqualValues(t, 2, next.Newest())
}

// The order of the steps is what a loss of power depends on: synced before it is renamed, the directory
// synced before the effect. A token that an earlier life left is saved once more: that life may have been
// killed between the rename and the sync of the directory, and a loss of power can still take it away.
func TestFile_StepsInOrder(t *testing.T) {
	for name, left := range map[string]string{"a new token": "3\n", "that of an earlier life": "123\n"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "orders.fence")
			require.NoError(t, os.WriteFile(path, []byte(left), 0o644))
			file, f := openFence(t, path)
			var steps []string
			hook(file, func(step string) error { steps = append(steps, step); return nil })
			for range 2 {
				require.NoError(t, f.Do(t.Context(), 123, func() error { steps = append(steps, "effect"); return nil }))
			}
			require.Equal(t, append(slices.Clone(diskSteps), "effect", "effect"), steps)
		})
	}
}

var diskSteps = []string{"create", "write", "sync", "rename", "sync the directory"}

// hook calls before ahead of each step, which fails if that does.
func hook(file *File, before func(step string) error) {
	real := file.disk
	file.disk = folder.Disk{
		Create: func(path string, flag int, mode os.FileMode) (*os.File, error) {
			if err := before("create"); err != nil {
				return nil, err
			}
			return real.Create(path, flag, mode)
		},
		Write: func(f *os.File, data []byte) error { return errors.Join(before("write"), real.Write(f, data)) },
		Sync:  func(f *os.File) error { return errors.Join(before("sync"), real.Sync(f)) },
		Rename: func(from, to string) error {
			if err := before("rename"); err != nil {
				return err
			}
			return real.Rename(from, to)
		},
		SyncDir: func(dir string) error { return errors.Join(before("sync the directory"), real.SyncDir(dir)) },
	}
}

// A process that is killed between any two steps, or in the middle of the write, has not run the effect. The
// next one finds the old token or the new one, and goes on.
func TestFile_KilledAtEachStep(t *testing.T) {
	type killed struct{}
	for _, at := range append(slices.Clone(diskSteps), "in the middle of the write", "in the effect") {
		t.Run(at, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "orders.fence")
			file, f := openFence(t, path)
			require.NoError(t, f.Check(t.Context(), 77))
			hook(file, func(step string) error {
				if step == at {
					panic(killed{})
				}
				return nil
			})
			if at == "in the middle of the write" {
				file.disk.Write = func(w *os.File, data []byte) error {
					_, err := w.Write(data[:1])
					require.NoError(t, err)
					panic(killed{})
				}
			}
			require.PanicsWithValue(t, killed{}, func() {
				_ = f.Do(t.Context(), 123, func() error {
					require.Equal(t, "in the effect", at, "an effect without a remembered token")
					panic(killed{})
				})
			})
			require.NoError(t, file.Close()) // as the kernel does

			_, f = openFence(t, path)
			switch at {
			case "sync the directory", "in the effect":
				require.EqualValues(t, 123, f.Newest())
			default:
				require.EqualValues(t, 77, f.Newest())
			}
			require.ErrorIs(t, f.Check(t.Context(), 76), ErrStale)
			require.NoError(t, f.Check(t.Context(), 123), "what was left behind is no obstacle")
		})
	}
}

// A disk that refuses a step: not admitted, and the next try is whole again.
func TestFile_FaultAtEachStep(t *testing.T) {
	for _, at := range diskSteps {
		t.Run(at, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "orders.fence")
			file, f := openFence(t, path)
			require.NoError(t, f.Check(t.Context(), 77))
			fault := &os.PathError{Op: at, Path: path, Err: errEffect}
			hook(file, func(step string) error {
				if step == at && fault != nil {
					return fault
				}
				return nil
			})
			err := f.Do(t.Context(), 123, func() error { t.Error("ran"); return nil })
			require.ErrorIs(t, err, errEffect)
			require.ErrorContains(t, err, path)
			require.NotContains(t, err.Error(), "\n")
			require.EqualValues(t, 77, f.Newest())
			require.NoError(t, f.Check(t.Context(), 77))
			fault = nil
			require.NoError(t, f.Check(t.Context(), 124))
			newest, err := file.Load()
			require.NoError(t, err)
			require.EqualValues(t, 124, newest)
		})
	}
}

func BenchmarkFence_Do(b *testing.B) {
	f, ctx := New(), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := f.Do(ctx, 1, func() error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
