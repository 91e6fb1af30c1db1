// voda completion: scripts for shells, made from the tree of commands, so that they cannot lag behind it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/io.h"

namespace voda {

namespace {

constexpr const char* kFooter = R"(Example:
  voda completion bash > ~/.local/share/bash-completion/completions/voda
  voda completion zsh > ~/.zfunc/_voda          (with fpath+=~/.zfunc before compinit)
  voda completion fish > ~/.config/fish/completions/voda.fish)";

// Templates of the scripts, filled in by fmt, so braces are doubled.
constexpr const char* kBash = R"sh(# bash completion for voda, made by `voda completion bash`.
_voda_words() {{
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}}
_voda_files() {{
  compopt -o filenames 2> /dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}}
_voda_names() {{
  mapfile -t COMPREPLY < <(compgen -W "$(timeout 3 "${{COMP_WORDS[0]}}" get "$1" -o name 2> /dev/null)" -- "$cur")
}}
_voda() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} path="voda" i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path ${{COMP_WORDS[i]}}" in
{}    esac
  done
  case "$path $prev" in
{}  esac
  case "$path" in
{}  esac
}}
complete -F _voda voda
)sh";

constexpr const char* kZsh = R"sh(#compdef voda
# zsh completion for voda, made by `voda completion zsh`.
_voda_names() {{
  local -a names
  names=(${{(f)"$(timeout 3 $words[1] get $1 -o name 2> /dev/null)"}})
  compadd -a names
}}
_voda() {{
  local -a items
  local path_here="voda" i
  for ((i = 2; i < CURRENT; i++)); do
    case "$path_here $words[i]" in
{}    esac
  done
  case "$path_here $words[CURRENT - 1]" in
{}  esac
  case "$path_here" in
{}  esac
}}
if [ "$funcstack[1]" = "_voda" ]; then _voda "$@"; else compdef _voda voda; fi
)sh";

constexpr const char* kFish = R"sh(# fish completion for voda, made by `voda completion fish`.
function __voda_names
    timeout 3 voda get $argv[1] -o name 2>/dev/null
end
function __voda_at
    set -l path voda
    for word in (commandline -opc)[2..-1]
        switch "$path $word"
{}        end
    end
    test "$path" = "$argv[1]"
end
{})sh";

// What a value can be: one of a list, a file, a folder, or a name that the server knows.
struct Values {
  std::vector<std::string> words;
  bool files = false;
  bool folders = false;
  std::string names;  // "jobs", "nodes" or "algorithms", as `voda get` takes them
};

struct Flag {
  std::vector<std::string> names;  // with their dashes
  std::string help;
  bool takes_value = false;
  Values values;
};

struct Command {
  std::vector<std::string> path;   // "get", "jobs"
  std::vector<std::string> names;  // the last word and its aliases
  std::string help;
  std::vector<const Command*> below;
  std::vector<Flag> flags;
  Values values;  // for its arguments
};

// Reads the type name of an option: a|b|c, TEXT:{a,b}, FILE, DIR, JOB, NODE, ALGORITHM.
Values ValuesOf(const std::string& type) {
  Values values;
  std::vector<std::string_view> words;
  if (const auto brace = type.find('{'); brace != type.npos && type.back() == '}') {
    const std::string_view list(type);
    words = SplitWords(list.substr(brace + 1, list.size() - brace - 2), ",");
  } else if (type.find('|') != type.npos) {
    words = SplitWords(type, "|");
  }
  values.words.assign(words.begin(), words.end());
  values.files = type == "FILE";
  values.folders = type == "DIR";
  values.names = type == "JOB" ? "jobs" : type == "NODE" ? "nodes" : type == "ALGORITHM" ? "algorithms" : "";
  return values;
}

// Commands from the root down; the pointers in `below` stay valid because each command is allocated.
void Collect(const CLI::App& app, const std::vector<std::string>& path,
             std::vector<std::unique_ptr<Command>>& all) {
  auto command = std::make_unique<Command>();
  command->path = path;
  command->names = {app.get_name()};
  for (const std::string& alias : app.get_aliases()) command->names.push_back(alias);
  command->help = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      command->values = ValuesOf(option->get_type_name());
      continue;
    }
    Flag flag;
    for (const std::string& name : option->get_snames()) flag.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) flag.names.push_back("--" + name);
    flag.help = option->get_description();
    flag.takes_value = option->get_items_expected_max() > 0;
    if (flag.takes_value) flag.values = ValuesOf(option->get_type_name());
    if (!flag.names.empty()) command->flags.push_back(std::move(flag));
  }
  Command* self = command.get();
  all.push_back(std::move(command));
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (below->get_name().empty()) continue;
    const std::size_t index = all.size();
    std::vector<std::string> longer = path;
    longer.push_back(below->get_name());
    Collect(*below, longer, all);
    self->below.push_back(all[index].get());
  }
}

std::string PathText(const Command& command) {
  return fmt::format("voda{}{}", command.path.empty() ? "" : " ", fmt::join(command.path, " "));
}

// Puts text into single quotes of a shell.
std::string Single(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string Spaced(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

// Writes `case` patterns that lead from a path to the one below it, by every name of the command.
std::string Walk(const std::vector<std::unique_ptr<Command>>& all) {
  std::string out;
  for (const auto& command : all) {
    for (const Command* below : command->below) {
      std::string patterns;
      for (const std::string& name : below->names) {
        patterns += fmt::format("{}\"{} {}\"", patterns.empty() ? "" : "|", PathText(*command), name);
      }
      out += fmt::format("      {}) path=\"{}\" ;;\n", patterns, PathText(*below));
    }
  }
  return out;
}

std::string BashValues(const Values& values) {
  if (!values.words.empty()) return fmt::format("_voda_words \"{}\"", Spaced(values.words));
  if (values.files) return "_voda_files -f";
  if (values.folders) return "_voda_files -d";
  if (!values.names.empty()) return "_voda_names " + values.names;
  return ":";
}

std::string Bash(const std::vector<std::unique_ptr<Command>>& all) {
  std::string values;
  std::string words;
  for (const auto& command : all) {
    const std::string path = PathText(*command);
    std::vector<std::string> flags;
    for (const Flag& flag : command->flags) {
      flags.insert(flags.end(), flag.names.begin(), flag.names.end());
      if (!flag.takes_value) continue;
      std::string patterns;
      for (const std::string& name : flag.names) {
        patterns += fmt::format("{}\"{} {}\"", patterns.empty() ? "" : "|", path, name);
      }
      values += fmt::format("    {}) {}; return ;;\n", patterns, BashValues(flag.values));
    }
    std::vector<std::string> below;
    for (const Command* next : command->below) below.push_back(next->names.front());
    const std::string rest =
        below.empty() ? BashValues(command->values) : fmt::format("_voda_words \"{}\"", Spaced(below));
    words += fmt::format("    \"{}\")\n      if [[ $cur == -* ]]; then _voda_words \"{}\"; else {}; fi ;;\n",
                         path, Spaced(flags), rest);
  }
  return fmt::format(kBash, Walk(all), values, words);
}

// Writes an item of _describe, in which a colon separates word and help.
std::string ZshItem(const std::string& word, const std::string& help) {
  std::string text;
  for (const char c : word) text += c == ':' ? std::string("\\:") : std::string(1, c);
  return Single(text + ":" + help);
}

std::string ZshValues(const Values& values) {
  if (!values.words.empty()) return "compadd -- " + Spaced(values.words);
  if (values.files) return "_files";
  if (values.folders) return "_files -/";
  if (!values.names.empty()) return "_voda_names " + values.names;
  return ":";
}

std::string Zsh(const std::vector<std::unique_ptr<Command>>& all) {
  std::string values;
  std::string words;
  for (const auto& command : all) {
    const std::string path = PathText(*command);
    std::string flags;
    for (const Flag& flag : command->flags) {
      std::string patterns;
      for (const std::string& name : flag.names) {
        flags += "\n        " + ZshItem(name, flag.help);
        patterns += fmt::format("{}\"{} {}\"", patterns.empty() ? "" : "|", path, name);
      }
      if (flag.takes_value)
        values += fmt::format("    {}) {}; return ;;\n", patterns, ZshValues(flag.values));
    }
    std::string below;
    for (const Command* next : command->below)
      below += "\n        " + ZshItem(next->names.front(), next->help);
    const std::string rest = below.empty()
                                 ? ZshValues(command->values)
                                 : fmt::format("items=({})\n        _describe command items", below);
    words += fmt::format(
        "    \"{}\")\n      if [[ $PREFIX == -* ]]; then\n        items=({})\n        _describe "
        "option items\n      else\n        {}\n      fi ;;\n",
        path, flags, rest);
  }
  std::string walk = Walk(all);
  // zsh ties `path` to PATH, so the variable needs another name.
  for (std::size_t at = 0; (at = walk.find(") path=", at)) != walk.npos; at += 9) {
    walk.replace(at, 7, ") path_here=");
  }
  return fmt::format(kZsh, walk, values, words);
}

std::string FishValues(const Values& values) {
  if (!values.words.empty()) return fmt::format(" -x -a {}", Single(Spaced(values.words)));
  if (values.files) return " -r -F";
  if (values.folders) return " -x -a '(__fish_complete_directories)'";
  if (!values.names.empty()) return fmt::format(" -x -a '(__voda_names {})'", values.names);
  return " -x";
}

std::string Fish(const std::vector<std::unique_ptr<Command>>& all) {
  std::string walk;
  std::string lines;
  for (const auto& command : all) {
    const std::string at = fmt::format("complete -c voda -n '__voda_at \"{}\"'", PathText(*command));
    for (const Command* below : command->below) {
      std::string patterns;
      for (const std::string& name : below->names) {
        patterns += fmt::format(" '{} {}'", PathText(*command), name);
      }
      walk += fmt::format("            case{}\n                set path '{}'\n", patterns, PathText(*below));
      lines += fmt::format("{} -f -a {} -d {}\n", at, below->names.front(), Single(below->help));
    }
    if (command->below.empty()) {
      const bool plain = command->values.words.empty() && command->values.names.empty();
      lines += at + (plain ? std::string(" -f") : FishValues(command->values)) + "\n";
    }
    for (const Flag& flag : command->flags) {
      std::string names;
      for (const std::string& name : flag.names) {
        names += name.substr(0, 2) == "--" ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      lines += fmt::format("{}{} -d {}{}\n", at, names, Single(flag.help),
                           flag.takes_value ? FishValues(flag.values) : "");
    }
  }
  return fmt::format(kFish, walk, lines);
}

}  // namespace

void AddCompletion(CLI::App& app) {
  auto* command = app.add_subcommand("completion", "print a script that completes commands in your shell")
                      ->group("Tools");
  const auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "which shell")
      ->required()
      ->type_name("bash|zsh|fish")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
  command->footer(kFooter);
  command->callback([shell, &app] {
    std::vector<std::unique_ptr<Command>> all;
    Collect(app, {}, all);
    const Status written = WriteOutput(*shell == "bash" ? Bash(all) : *shell == "zsh" ? Zsh(all) : Fish(all));
    if (written) return;
    fmt::print(stderr, "voda completion: {}\n", written.error().message);
    throw CLI::RuntimeError(kExitError);
  });
}

}  // namespace voda
