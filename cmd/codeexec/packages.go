package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"codeexec/bridge/packages"
)

func newPackagesCommand(std streams, env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "packages",
		Short: "Add pure-Python packages that scripts can import, list and remove them",
		Long: `Add pure-Python packages that scripts can import, list and remove them. They are in
the folder user_tools/packages of the state directory, which scripts see as
/projects/packages.`,
		Args: noSubcommand,
		RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPackagesAddCommand(std, env), newPackagesListCommand(std, env), newPackagesRemoveCommand(std, env))
	return cmd
}

// openPackages opens the folder without making anything on the disk.
func openPackages(std streams, env environment) (*packages.Folder, error) {
	s, err := env.stateOf(std)
	if err != nil {
		return nil, err
	}
	return packagesOf(s), nil
}

func packagesOf(s settings) *packages.Folder {
	return packages.Open(filepath.Join(s.stateDir, "user_tools", "packages"), filepath.Join(s.stateDir, "packages.lock"))
}

// recoverPackages undoes what a killed "packages add" has left, before scripts see it.
func recoverPackages(ctx context.Context, s settings, logger *slog.Logger) {
	if s.stateDir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recoverTime)
	defer cancel()
	if err := packagesOf(s).Recover(ctx); err != nil {
		logger.Warn("packages", "error", err)
	}
}

// recoverTime is how long a change of the packages that is going on is waited for.
const recoverTime = 2 * time.Second

func newPackagesAddCommand(std streams, env environment) *cobra.Command {
	var sum string
	cmd := &cobra.Command{
		Use:   "add WHEEL|DIR|REQUIREMENT",
		Short: "Add a package",
		Long: `Add a package, in the place of another version of it, from

  WHEEL        a file NAME-VERSION-py3-none-any.whl. It is checked against the
               hashes in it.
  DIR          a directory that is a package, with an __init__.py, or a project
               with packages in it or in its src. Nothing of it is executed.
  REQUIREMENT  such as attrs or "attrs>=23": the pip of this machine downloads it,
               and what it needs, from the index that it is set up for.

Where there is a file or a directory of that name, that is added, and nothing is
downloaded. Packages with compiled code are refused: the sandbox runs Python only.`,
		Example: `  codeexec packages add ./attrs-25.3.0-py3-none-any.whl --sha256 427318ce…
  codeexec packages add 'attrs>=23'`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef(cmd, "name a wheel, a directory, or a requirement such as attrs>=23")
			case len(args) > 1:
				return usagef(cmd, "one package at a time: %q is too much", args[1])
			}
			if raw, err := hex.DecodeString(sum); err != nil || sum != "" && len(raw) != 32 {
				return usagef(cmd, "--sha256: it must have 64 hexadecimal digits")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			folder, err := openPackages(std, env)
			if err != nil {
				return err
			}
			dists, err := readPackages(cmd, args[0], sum, std.err)
			defer func() {
				for _, dist := range dists {
					err = errors.Join(err, dist.Close())
				}
			}()
			if err != nil {
				return err
			}
			added, err := folder.Add(cmd.Context(), dists...)
			if err != nil {
				return err
			}
			for _, dist := range dists {
				for _, note := range dist.Notes {
					fmt.Fprintf(std.err, "codeexec: %s: %s\n", dist.Name(), note)
				}
			}
			for _, p := range added {
				replaced := ""
				if p.Replaced != "" && p.Replaced != p.Version {
					replaced = ", in the place of " + p.Replaced
				}
				fmt.Fprintf(std.out, "Added %s %s (%d files)%s.\n", p.Name, p.Version, p.Files, replaced)
				for _, name := range p.Needs {
					fmt.Fprintf(std.err, "codeexec: %s needs %s, which isn't there: codeexec packages add %[2]s\n", p.Name, name)
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&sum, "sha256", "", "the SHA-256 that the wheel must have, in `HEX`")
	return cmd
}

// readPackages reads what is to be added. What it returns must be closed, also beside an error.
func readPackages(cmd *cobra.Command, what, sum string, progress io.Writer) ([]*packages.Distribution, error) {
	info, err := os.Stat(what)
	switch {
	case err == nil && info.IsDir():
		if sum != "" {
			return nil, usagef(cmd, "--sha256 is for wheels, and %s is a directory", what)
		}
		dist, err := packages.ReadTree(what)
		if err != nil {
			return nil, err
		}
		return []*packages.Distribution{dist}, nil
	case err == nil || strings.HasSuffix(what, ".whl"):
		dist, err := packages.ReadWheel(what, sum)
		if err != nil {
			return nil, err
		}
		return []*packages.Distribution{dist}, nil
	case packages.IsRequirement(what):
		return downloadPackages(cmd.Context(), what, sum, progress)
	case strings.ContainsAny(what, `/\`) && !strings.Contains(what, "://"):
		return nil, err // a path of something that isn't there
	}
	return nil, usagef(cmd, "%q is no wheel, no directory, and no requirement such as attrs>=23", what)
}

func downloadPackages(ctx context.Context, requirement, sum string, progress io.Writer) (dists []*packages.Distribution, err error) {
	dir, remove, err := packages.MakeTemp()
	if err != nil {
		return nil, err
	}
	// The wheels are open, and need no names any more.
	defer func() { err = errors.Join(err, remove()) }()
	fmt.Fprintf(progress, "codeexec: pip downloads %s\n", requirement)
	wheels, err := packages.Download(ctx, requirement, dir)
	if err != nil {
		return nil, err
	}
	for _, wheel := range wheels {
		dist, err := packages.ReadWheel(wheel, sum)
		if err != nil {
			return dists, err
		}
		dists = append(dists, dist)
		sum = "" // it is that of the first, which was asked for
	}
	return dists, nil
}

func newPackagesListCommand(std streams, env environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the packages",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			folder, err := openPackages(std, env)
			if err != nil {
				return err
			}
			all, err := folder.List(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(std.out, append([]packages.Installed{}, all...))
			}
			if len(all) == 0 {
				_, err := fmt.Fprintln(std.out, "No packages. See \"codeexec packages add --help\".")
				return err
			}
			table := newTable(std.out)
			fmt.Fprintln(table, "NAME\tVERSION\tFILES\tSUMMARY")
			for _, p := range all {
				version, files, about := p.Version, strconv.Itoa(p.Files), p.Summary
				switch {
				case p.ByHand:
					version, files, about = "-", "-", "put there by hand"
				case p.Problem != "":
					about = "damaged: " + p.Problem
				case len(p.Needs) > 0:
					about = "lacks " + strings.Join(p.Needs, ", ")
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", p.Name, oneLine(version, 40), files, oneLine(about, 80))
			}
			return table.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newPackagesRemoveCommand(std streams, env environment) *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME...",
		Short: "Remove packages",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef(cmd, "name a package")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			folder, err := openPackages(std, env)
			if err != nil {
				return err
			}
			var errs []error
			for _, name := range args {
				removed, err := folder.Remove(cmd.Context(), name)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				fmt.Fprintf(std.out, "Removed %s %s.\n", removed.Name, removed.Version)
			}
			return errors.Join(errs...)
		},
	}
}
