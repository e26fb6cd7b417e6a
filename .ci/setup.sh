# Sourced by examples/demo, test/run and .ci/run, which set `root` first. ensure_packages [--yes] prints the apt-get line for what is missing, and runs it
# when the user is root or says --yes. build_planc configures and builds the default preset.

ensure_packages() {
  local missing=() package
  while read -r package _; do
    case $package in '' | '#'*) continue ;; esac
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done <"$root/.ci/packages"
  [ ${#missing[@]} -eq 0 ] && return
  local sudo=''
  [ "$(id -u)" = 0 ] || sudo='sudo '
  echo "missing packages: ${sudo}apt-get install -y ${missing[*]}"
  if [ -n "$sudo" ] && [ "${1:-}" != --yes ]; then
    echo "run the line above, or run this script with --yes"
    exit 3
  fi
  ${sudo}apt-get update -qq
  ${sudo}env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" >/dev/null
}

build_planc() {
  local jobs
  jobs=$(nproc)
  (cd "$root" && cmake --preset default >/dev/null && ninja -C build -j"$jobs" "$@")
}
