#!/usr/bin/env bash
# Builds CPython for WASI and everything that the Go package in this folder
# embeds, into artifacts/. One command on a bare Debian 12 with Go, as root:
#
#     python-wasm/build.sh         build
#     python-wasm/build.sh test    build, and test the guest's Python natively
#
# Each stage below is a function whose result is a folder of the build cache,
# named by a hash over the function's own text, its input files and the results
# that it builds on. So a changed line rebuilds what depends on it and nothing
# else, and two checkouts share what they have in common.
#
# Overrides, for other systems and versions:
#   CODEEXEC_BUILD_CACHE  where results are kept  (~/.cache/codeexec-build)
#   CPYTHON_SRC           an unpacked CPython source tree
#   WASI_SYSROOT          a wasi-libc sysroot (include/wasm32-wasi, lib/wasm32-wasi)
#   TZDATA                a folder of compiled zoneinfo files
#   ZLIB_SRC, BZIP2_SRC, XZ_SRC, SQLITE_SRC   unpacked library sources
#   CC, AR, RANLIB        a clang that targets wasm32-wasi, and its archive tools
#   HOSTCC                the C compiler of this machine (cc)
#   SUITES                Debian suites to try for sources, best first
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${CODEEXEC_BUILD_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/codeexec-build}
mkdir -p "$cache"

CC=${CC:-clang-19}
AR=${AR:-llvm-ar-19}
RANLIB=${RANLIB:-llvm-ranlib-19}
HOSTCC=${HOSTCC:-cc}
SUITES=${SUITES:-trixie bookworm}
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

# Builds of the same inputs give the same bytes: sys.version holds a build date.
export SOURCE_DATE_EPOCH=1750000000 LC_ALL=C TZ=UTC
# Only what the recipe itself sets may reach a compiler.
unset CFLAGS CPPFLAGS LDFLAGS PYTHONPATH PYTHONHOME MAKEFLAGS MAKELEVEL MFLAGS

say() { printf 'python-wasm: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# stage NAME [INPUT...]: runs the function build_NAME in a fresh folder unless
# its result is there, and leaves the result's folder in the variable NAME_dir.
# Inputs are files, folders (all their files), or plain words such as versions.
stage() {
	local name=$1 key log start input
	shift
	key=$({
		declare -f "build_$name"
		for input; do
			if [[ -d $input && $input == "$here"/* ]]; then
				(cd "$input" && find . -type f ! -name '*.pyc' ! -name '*_test.go' -print0 | sort -z | xargs -0 sha256sum)
			elif [[ -f $input ]]; then
				sha256sum <"$input"
			else
				echo "$input"
			fi
		done
	} | sha256sum | cut -c1-16)
	local dir=$cache/$name-$key
	printf -v "${name}_dir" %s "$dir"
	if [[ -e $dir/.done ]]; then
		touch "$dir/.done"
		return
	fi
	log=$cache/$name-$key.log
	start=$SECONDS
	say "$name: building (log: $log)"
	rm -rf "$dir"
	mkdir -p "$dir"
	# Not as the condition of an if: bash ignores errexit inside one.
	local status
	set +e
	(
		set -ex
		cd "$dir"
		"build_$name"
	) >"$log" 2>&1
	status=$?
	set -e
	if ((status)); then
		tail -n 30 "$log" >&2
		die "$name failed after $((SECONDS - start)) s; the whole log is $log"
	fi
	touch "$dir/.done"
	say "$name: done in $((SECONDS - start)) s"
}

# --- tools and sources ------------------------------------------------------

# install PACKAGE...: Debian packages that this machine lacks.
install() {
	local missing=() p
	for p; do
		dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
	done
	((${#missing[@]})) || return 0
	say "installing ${missing[*]} (log: $cache/apt.log)"
	if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } \
		>"$cache/apt.log" 2>&1; then
		tail -n 20 "$cache/apt.log" >&2
		die "could not install ${missing[*]}"
	fi
}

need() { command -v "$1" >/dev/null || die "$1 is missing; $2"; }

tools() {
	if command -v apt-get >/dev/null && [[ $(id -u) == 0 ]]; then
		local pkgs=(gcc libc6-dev make xz-utils bzip2 tcl)
		[[ $CC == clang-19 ]] && pkgs+=(clang-19 lld-19 llvm-19 libclang-rt-19-dev-wasm32)
		install "${pkgs[@]}"
	fi
	local tool
	for tool in "${CC%% *}" "$AR" "$RANLIB" "$HOSTCC" make xz bzip2 tclsh go; do
		need "$tool" "install it, or name another by the variables at the top of $0"
	done
}

# debian SUITE APT-GET-ARGS...: apt-get against another suite of the archive
# that this machine already uses. Its own configuration and lists stay as they
# are: everything apt writes goes to a folder of ours.
debian() {
	local suite=$1 root=$cache/apt/$1 uri codename opts
	shift
	codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
	uri=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		awk -v release="$codename" '$2 == release && $3 == "main" { print $1; exit }')
	[[ -n $uri ]] || die "apt has no lists of $codename/main; run apt-get update, or set the …_SRC variables"
	mkdir -p "$root/lists/partial" "$root/cache/archives/partial"
	opts='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'
	printf '%s %s %s %s main\n' deb "$opts" "$uri" "$suite" deb-src "$opts" "$uri" "$suite" >"$root/sources.list"
	local apt=(apt-get -qq -o "Dir::Etc::SourceList=$root/sources.list" -o Dir::Etc::SourceParts=/dev/null
		-o "Dir::State::Lists=$root/lists" -o "Dir::Cache=$root/cache" -o APT::Sandbox::User=root)
	if [[ ! -e $root/updated ]]; then
		"${apt[@]}" update
		touch "$root/updated"
	fi
	"${apt[@]}" "$@"
}

# fetch source|deb PACKAGE SUITE...: the upstream tarball of a Debian source
# package, or a binary package, from the first suite that has it, into the
# current folder. The archive doesn't hold every version that its index lists.
fetch() {
	local kind=$1 package=$2 suite
	shift 2
	for suite; do
		if case $kind in
			source) debian "$suite" source --tar-only -d "$package" ;;
			deb) debian "$suite" download "$package" ;;
			esac; then
			echo "$package from $suite" >>SUITES
			return
		fi
	done
	die "$package could not be had from any of: $*"
}

# unpack PATTERN DIR: a tarball's one folder as DIR.
unpack() {
	local tarballs=($1)
	mkdir "$2"
	tar -xf "${tarballs[0]}" -C "$2" --strip-components=1
}

build_sources() {
	# apt needs lists of this machine's own release to tell where the archive is.
	apt-get indextargets 'Created-By: Packages' | grep -q . || apt-get update
	local p
	for p in python3.13 zlib bzip2 sqlite3; do fetch source "$p" $SUITES; done
	# trixie's xz needs more than WASI has.
	fetch source xz-utils bookworm $SUITES
	for p in wasi-libc tzdata; do fetch deb "$p" $SUITES; done
	ls >FILES

	unpack 'python3.13_*.orig.tar.*' cpython
	unpack 'zlib_*.orig.tar.*' zlib
	unpack 'bzip2_*.orig.tar.*' bzip2
	unpack 'xz-utils_*.orig.tar.*' xz
	unpack 'sqlite3_*.orig.tar.*' sqlite
	dpkg -x wasi-libc_*.deb wasi-libc
	dpkg -x tzdata_*.deb tzdata
	rm ./*.tar.* ./*.deb
}

# --- CPython ----------------------------------------------------------------

# A CPython of the very same version for this machine: it runs the cross build,
# compiles the frozen modules, and runs the unit tests of the guest package.
build_native() {
	"$CPYTHON_SRC/configure" -q --prefix=/usr --without-ensurepip --disable-test-modules \
		CC="$HOSTCC" OPT='-DNDEBUG -O1' CFLAGS='-g0'
	make -s -j"$jobs"
	./python -c 'import struct, marshal, zlib' || ./python -c 'import struct, marshal'
}

# What every C file for the sandbox is compiled with. Paths of this machine
# are mapped away, so that a build doesn't depend on where it was made.
wasm_flags() {
	echo "--target=wasm32-wasi --sysroot=$WASI_SYSROOT -ffile-prefix-map=$CPYTHON_SRC=cpython" \
		"-ffile-prefix-map=$PWD=. -D_WASI_EMULATED_SIGNAL -D_WASI_EMULATED_GETPID -D_WASI_EMULATED_PROCESS_CLOCKS"
}

build_libs() {
	local cc="$CC $(wasm_flags) -g0 -O2 -DNDEBUG -w"
	mkdir include lib

	# archive NAME SOURCE-FOLDER "FILES" FLAGS...
	archive() {
		local name=$1 src=$2 files=$3 f
		shift 3
		mkdir -p "obj-$name"
		for f in $files; do
			echo "$cc $* -c $src/$f -o obj-$name/$(echo "$f" | tr / _).o"
		done | xargs -P "$jobs" -I{} sh -c '{}'
		"$AR" rcsD "lib/lib$name.a" "obj-$name"/*.o
		rm -r "obj-$name"
	}

	archive z "$ZLIB_SRC" 'adler32.c compress.c crc32.c deflate.c infback.c inffast.c inflate.c inftrees.c trees.c uncompr.c zutil.c'
	cp "$ZLIB_SRC"/{zlib,zconf}.h include/

	archive bz2 "$BZIP2_SRC" 'blocksort.c huffman.c crctable.c randtable.c compress.c decompress.c bzlib.c'
	cp "$BZIP2_SRC/bzlib.h" include/

	# WASI has no signal masks; without threads xz blocks signals and no more.
	mkdir xz
	printf '%s\n' '#include <__typedef_sigset_t.h>' '#define sigprocmask(how, set, old) 0' >xz/wasi.h
	(cd xz && "$XZ_SRC/configure" -q --host=wasm32-wasi CC="$cc -include $PWD/wasi.h" CFLAGS= AR="$AR" RANLIB="$RANLIB" \
		--disable-threads --disable-shared --disable-nls --disable-doc --disable-scripts \
		--disable-xz --disable-xzdec --disable-lzmadec --disable-lzmainfo --disable-lzma-links &&
		make -s -j"$jobs" -C src/liblzma)
	cp xz/src/liblzma/.libs/liblzma.a lib/
	cp -r "$XZ_SRC/src/liblzma/api"/lzma{,.h} include/
	rm -r xz

	# SQLite's one-file form is made by its own scripts, natively.
	mkdir sqlite
	(cd sqlite && "$SQLITE_SRC/configure" -q --disable-tcl --disable-readline CC="$HOSTCC" && make -s sqlite3.c)
	archive sqlite3 "$PWD/sqlite" sqlite3.c -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION \
		-DSQLITE_OMIT_WAL -DSQLITE_MAX_MMAP_SIZE=0 -DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_MATH_FUNCTIONS \
		-DSQLITE_ENABLE_DBSTAT_VTAB -DSQLITE_DEFAULT_FOREIGN_KEYS=0
	cp sqlite/sqlite3.h include/
	rm -r sqlite
}

build_cpython() {
	cp "$CPYTHON_SRC/Tools/wasm/config.site-wasm32-wasi" config.site
	cat >>config.site <<-'SITE'
		# No sockets at all: not even the functions on inherited descriptors.
		py_cv_module__socket=n/a
		py_cv_module_select=n/a
		# The host polls relative times only: an absolute clock_nanosleep fails.
		ac_cv_func_clock_nanosleep=no
		ac_cv_lib_rt_clock_nanosleep=no
	SITE
	export CONFIG_SITE=$PWD/config.site
	local lib=$libs_dir
	"$CPYTHON_SRC/configure" -q --prefix=/usr --host=wasm32-wasi --build="$("$CPYTHON_SRC/config.guess")" \
		--with-build-python="$native_dir/python" --with-suffix=.wasm --with-pymalloc \
		--disable-test-modules --without-ensurepip \
		CC="$CC $(wasm_flags)" AR="$AR" RANLIB="$RANLIB" PKG_CONFIG=/bin/false HOSTRUNNER=/bin/false \
		OPT='-DNDEBUG -g0 -O3 -Wall' \
		ZLIB_CFLAGS="-I$lib/include" ZLIB_LIBS="-L$lib/lib -lz" \
		BZIP2_CFLAGS="-I$lib/include" BZIP2_LIBS="-L$lib/lib -lbz2" \
		LIBLZMA_CFLAGS="-I$lib/include" LIBLZMA_LIBS="-L$lib/lib -llzma" \
		LIBSQLITE3_CFLAGS="-I$lib/include" LIBSQLITE3_LIBS="-L$lib/lib -lsqlite3"
	# Only the archives and the build-time variables: python.wasm itself isn't wanted.
	make -s -j"$jobs" libpython3.13.a pybuilddir.txt
}

# The reactor: the glue, CPython, and all Python code as data.
build_link() {
	local py=$cpython_dir lib=$libs_dir/lib
	"$native_dir/python" "$here/freeze.py" . "$CPYTHON_SRC/Lib" "$py/build"/lib.*/_sysconfigdata*.py \
		"$here/guest/overlay" "$here/guest"
	$CC $(wasm_flags) -std=gnu2x -Wall -Wno-c23-extensions -Werror -DNDEBUG -g0 -O2 \
		-I"$CPYTHON_SRC/Include" -I"$CPYTHON_SRC/Include/internal" -I"$py" -I. --embed-dir=. \
		-c "$here"/glue/*.c
	local wrapped=(close stat lstat fstat fstatat open openat mkdir mkdirat access faccessat fcntl chdir isatty __wasilibc_find_relpath_alloc)
	$CC $(wasm_flags) -mexec-model=reactor -Wl,-z,stack-size=8388608 -Wl,--stack-first \
		-Wl,--gc-sections -Wl,--strip-all -Wl,-O2 "${wrapped[@]/#/-Wl,--wrap=}" codeexec.o files.o "$py/libpython3.13.a" \
		"$py/Modules/_decimal/libmpdec/libmpdec.a" "$py/Modules/expat/libexpat.a" "$py"/Modules/_hacl/*.a \
		-L"$lib" -lsqlite3 -llzma -lbz2 -lz -ldl -lm \
		-lwasi-emulated-signal -lwasi-emulated-getpid -lwasi-emulated-process-clocks -o python.wasm
	rm codeexec.o files.o frozen.bin frozen.inc
}

# What package pythonwasm embeds: the module with fuel checks and without data,
# the memory of a warmed interpreter, and the read-only files of the sandbox.
build_artifacts() {
	(cd "$here/.." && go build -o "$OLDPWD/postlink" ./python-wasm/internal/postlink)
	local version
	version=$(sed -n 's/^#define PY_VERSION *"\(.*\)"/\1/p' "$CPYTHON_SRC/Include/patchlevel.h")
	./postlink -module "$link_dir/python.wasm" -zoneinfo "$TZDATA" -cpython "$version" -out .
	rm postlink
}

# Those of CPython's own tests that the sandbox runs, see package wasmhost. They
# are compiled, for that takes long in the sandbox, and never embedded.
build_tests() {
	local part
	mkdir test
	for part in __init__.py support archivetestdata archiver_tests.py mapping_tests.py \
		test_filecmp.py test_fileinput.py test_fileio.py test_genericpath.py test_glob.py test_mailbox.py test_os.py \
		test_pathlib test_posixpath.py test_shutil.py test_sqlite3 test_tempfile.py test_zipfile; do
		cp -R "$CPYTHON_SRC/Lib/test/$part" test/
	done
	find test -name __pycache__ -prune -exec rm -r {} +
	"$native_dir/python" -m compileall -q --invalidation-mode unchecked-hash -s "$PWD" test
	tar -czf cpython-tests.tar.gz test
	rm -r test
}

# install_artifacts puts the result where go:embed finds it, and says nothing
# where it is there already.
install_artifacts() {
	local file changed=
	for file in "$artifacts_dir"/*; do
		cmp -s "$file" "$here/artifacts/${file##*/}" && continue
		cp "$file" "$here/artifacts/"
		changed=1
	done
	[[ -z $changed ]] || say "artifacts: $(cd "$here/artifacts" && du -ch *.zst *.zip *.json | tail -n 1 | cut -f1) in python-wasm/artifacts"
}

# install_tests puts CPython's tests where those of package wasmhost find them.
install_tests() {
	cmp -s {"$tests_dir","$here/testdata"}/cpython-tests.tar.gz || cp "$tests_dir/cpython-tests.tar.gz" "$here/testdata/"
}

# test_guest runs the unit tests of the guest's Python natively.
test_guest() {
	local suite
	export PYTHONDONTWRITEBYTECODE=1
	cd "$here/guest"
	for suite in tests mcp_tests; do
		say "testing guest/$suite"
		"$native_dir/python" -m unittest discover -q -s "$suite" -t .
	done
}

# --- main -------------------------------------------------------------------

main() {
	# One build at a time: results are made in the place where they stay.
	if command -v flock >/dev/null; then
		exec 9>"$cache/lock"
		flock -n 9 || { say "waiting for another build"; flock 9; }
	fi
	tools
	if [[ -z ${CPYTHON_SRC:-} || -z ${WASI_SYSROOT:-} ]]; then
		stage sources "$SUITES"
		CPYTHON_SRC=${CPYTHON_SRC:-$sources_dir/cpython}
		WASI_SYSROOT=${WASI_SYSROOT:-$sources_dir/wasi-libc/usr}
		TZDATA=${TZDATA:-$sources_dir/tzdata/usr/share/zoneinfo}
		ZLIB_SRC=${ZLIB_SRC:-$sources_dir/zlib} BZIP2_SRC=${BZIP2_SRC:-$sources_dir/bzip2}
		XZ_SRC=${XZ_SRC:-$sources_dir/xz} SQLITE_SRC=${SQLITE_SRC:-$sources_dir/sqlite}
	fi
	local toolchain
	toolchain=$($CC --version | head -n 1)
	stage native "$CPYTHON_SRC" "$HOSTCC"
	stage libs "$WASI_SYSROOT" "$ZLIB_SRC" "$BZIP2_SRC" "$XZ_SRC" "$SQLITE_SRC" "$toolchain" "$(declare -f wasm_flags)"
	stage cpython "$CPYTHON_SRC" "$native_dir" "$libs_dir" "$toolchain" "$(declare -f wasm_flags)"
	stage link "$cpython_dir" "$here/glue" "$here/freeze.py" "$here/guest/codeexec" "$here/guest/mcp" "$here/guest/overlay"
	stage artifacts "$link_dir" "$TZDATA" "$here/internal" "$here/artifacts.go" "$(grep -E 'wazero|compress' "$here/../go.mod")"
	install_artifacts
	stage tests "$CPYTHON_SRC" "$native_dir"
	install_tests
	[[ ${1:-} != test ]] || test_guest
}
main "$@"
