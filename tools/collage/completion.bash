# Completes sub-commands, their flags and files in bash, by what `collage help` prints. In zsh: autoload bashcompinit; bashcompinit.
_collage() {
  local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} command=${COMP_WORDS[0]} words
  if [ "$COMP_CWORD" -eq 1 ]; then
    words=$("$command" help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    return
  fi
  words=$("$command" help "$verb" 2>/dev/null | sed -n -e '/^Examples:/q' -e 's/^  \(-[a-z-]*\).*/\1/p' \
    -e '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
  case $word in
    -*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$word") $(compgen -f -- "$word")) ;;
  esac
}
complete -o filenames -F _collage collage
