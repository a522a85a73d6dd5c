#!/usr/bin/env bash
# Try the set-up on a bare Debian 12: a debootstrap root that holds python3 and make and no more.
#
#   sudo tools/try_debian12.sh [COMMAND...]         the default command is: make run
#
# The checkout is copied in, without .venv. The host's certificates, name resolution, apt and pip
# settings and PIP_* variables hold inside as well. Settings, all optional:
#   TRIAL_ROOT    folder for the root; it is kept, and a second try starts from what it holds
#                 (default: a temporary folder, removed at the end)
#   TRIAL_MIRROR  where debootstrap fetches from (default: the host's first apt source)
#   TRIAL_BINDS   folders to show inside, read-only, such as those pip's find-links name
#   TRIAL_USER    run the command as an ordinary user of this name, with no sudo
set -euo pipefail

checkout=$(cd "$(dirname "$0")/.." && pwd)
[ $# -gt 0 ] || set -- make run

if [ "$(id -u)" != 0 ]; then
    echo "try_debian12: needs root, for debootstrap and chroot" >&2
    exit 1
fi
if ! command -v debootstrap >/dev/null; then
    echo "try_debian12: debootstrap is missing: apt-get install debootstrap" >&2
    exit 1
fi

# Mounts made in a namespace of their own are gone with it, however this script ends; so are the
# processes.
if [ -z "${TRIAL_INSIDE:-}" ]; then
    if [ -z "${TRIAL_ROOT:-}" ]; then
        TRIAL_ROOT=$(mktemp -d)
        trap 'rm -rf --one-file-system "$TRIAL_ROOT"' EXIT
    fi
    export TRIAL_ROOT
    TRIAL_INSIDE=yes unshare --mount --pid --fork --propagation private "$0" "$@"
    exit
fi

root=$TRIAL_ROOT
if [ ! -e "$root/etc/trial-made" ]; then
    mirror=${TRIAL_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' | head -n 1)}
    echo "try_debian12: making a bare Debian 12 in $root" >&2
    debootstrap --variant=minbase --include=python3,make bookworm "$root" "$mirror" >&2
    touch "$root/etc/trial-made"
fi

mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
# A link inside, followed from out here, would lead to the host's own file: remove it first.
copy="cp -L -R --remove-destination"
$copy /etc/resolv.conf /etc/hosts "$root/etc/"
$copy /etc/apt/apt.conf.d /etc/apt/auth.conf.d "$root/etc/apt/"
for settings in /etc/pip.conf /etc/xdg/pip; do
    if [ -e "$settings" ]; then
        mkdir -p "$root$(dirname "$settings")"
        $copy "$settings" "$root$(dirname "$settings")/"
    fi
done
# Debian's ca-certificates, once installed, makes the bundle anew and adds the local folder's.
mkdir -p "$root/etc/ssl/certs" "$root/usr/local/share/ca-certificates"
$copy /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
$copy /etc/ssl/certs/ca-certificates.crt "$root/usr/local/share/ca-certificates/trial-host.crt"
for folder in ${TRIAL_BINDS:-}; do
    mkdir -p "$root$folder"
    mount --bind -o ro "$folder" "$root$folder"
done

inside=/srv/kernel-explorer
mkdir -p "$root$inside"
# Of an earlier try only .venv stays: a file that is gone from the checkout must be gone here too.
find "$root$inside" -mindepth 1 -maxdepth 1 ! -name .venv -exec rm -rf {} +
tar -C "$checkout" --exclude=./.venv --exclude=./.git --exclude='*.egg-info' --exclude=__pycache__ \
    -cf - . | tar -C "$root$inside" --no-same-owner -xf -

environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8)
while IFS= read -r variable; do
    environment+=("$variable")
done < <(env | grep -iE '^(PIP_[A-Z_]*|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|[a-z]*_proxy|CI)=')

become=()
if [ -n "${TRIAL_USER:-}" ]; then
    chroot "$root" id "$TRIAL_USER" >/dev/null 2>&1 || chroot "$root" useradd -m "$TRIAL_USER"
    chroot "$root" chown -R "$TRIAL_USER" "$inside"
    environment+=("HOME=$(chroot "$root" getent passwd "$TRIAL_USER" | cut -d: -f6)")
    become=(setpriv "--reuid=$TRIAL_USER" "--regid=$TRIAL_USER" --init-groups)
else
    environment+=(HOME=/root)
fi
chroot "$root" "${become[@]}" env -i "${environment[@]}" \
    sh -c 'cd "$1" && shift && exec "$@"' sh "$inside" "$@"
