// The folder of --data: ours alone, because it holds the token and what jobs print. Everything in it is made
// for the owner only, so others may look at its list; they must not be able to put files in the place of
// ours.
#pragma once

#include <string>

#include "base/result.h"

namespace voda {

// Makes the folder, mode 0700, where there is none; one that is there keeps its mode. An error where others
// may write to it (but on `shared` volumes, whose modes are not ours to choose), or we may not.
Status PrepareDataFolder(const std::string& path, bool shared);

// For the CLI: where this data folder's server answers. A file that says so already is left alone: on a full
// disk it could not be replaced. One that says otherwise is gone where it cannot be replaced.
Status WriteServerFile(const std::string& path, const std::string& url);
// At a clean stop, before the port is another's to take: whoever listens there next must not get the token.
// Only where it names this server.
void RemoveServerFile(const std::string& path, const std::string& url);
// The Unix sockets of the same server: for the CLI, and for the progress reports of jobs.
std::string SocketPath(const std::string& data);
std::string ProgressSocketPath(const std::string& data);

}  // namespace voda
