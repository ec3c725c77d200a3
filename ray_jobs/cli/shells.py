"""The completion scripts of the shells."""

# Bash splits words at `=`, so only the text after it is completed.
_BASH = r"""# eval "$(mustsee completion bash)" in ~/.bashrc
_mustsee() {
    local line=${COMP_LINE:0:COMP_POINT}
    local -a typed=($line)
    [[ $line == *[[:space:]] ]] && typed+=("")
    local last=${typed[${#typed[@]}-1]} IFS=$'\n'
    local cut=""
    [[ $last == *=* ]] && cut=${last%=*}=
    COMPREPLY=($(mustsee completion words "${typed[@]:1}" 2>/dev/null))
    COMPREPLY=("${COMPREPLY[@]#"$cut"}")
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o default -F _mustsee mustsee"""
_ZSH = r"""# eval "$(mustsee completion zsh)" in ~/.zshrc, after compinit
_mustsee() {
    local -a candidates=("${(@f)$(mustsee completion words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    candidates=(${candidates:#})
    if (( $#candidates )); then
        compadd -Q -S '' -- $candidates
    else
        compset -P '*=' && _files
    fi
}
compdef _mustsee mustsee"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH}
