#include "local/gpus.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <mutex>
#include <utility>

namespace voda {

namespace {

// The part of NVML's C interface that is used here.
using Device = struct DeviceHandle*;
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct Utilization {
  unsigned gpu;
  unsigned memory;
};
constexpr int kSuccess = 0;
constexpr int kDriverNotLoaded = 9;
constexpr int kLibraryNotFound = 12;
constexpr std::size_t kNameBytes = 96;

class Nvml {
 public:
  // Null if the library is missing. It is loaded once, for the life of the process.
  static Nvml* Get() {
    static Nvml* const loaded = Load();
    return loaded;
  }

  int (*Init)() = nullptr;
  int (*Shutdown)() = nullptr;
  int (*Count)(unsigned*) = nullptr;
  int (*Handle)(unsigned, Device*) = nullptr;
  int (*Name)(Device, char*, unsigned) = nullptr;
  int (*MemoryOf)(Device, Memory*) = nullptr;
  int (*UtilizationOf)(Device, Utilization*) = nullptr;
  const char* (*ErrorText)(int) = nullptr;
  std::mutex mutex;  // Init and Shutdown are counted, and calls must lie between them

 private:
  static Nvml* Load() {
    void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    auto* const nvml = new Nvml;  // NOLINT: never freed, as the library is never unloaded
    bool complete = true;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      complete = complete && function != nullptr;
    };
    find(nvml->Init, "nvmlInit_v2");
    find(nvml->Shutdown, "nvmlShutdown");
    find(nvml->Count, "nvmlDeviceGetCount_v2");
    find(nvml->Handle, "nvmlDeviceGetHandleByIndex_v2");
    find(nvml->Name, "nvmlDeviceGetName");
    find(nvml->MemoryOf, "nvmlDeviceGetMemoryInfo");
    find(nvml->UtilizationOf, "nvmlDeviceGetUtilizationRates");
    find(nvml->ErrorText, "nvmlErrorString");
    if (complete) return nvml;
    delete nvml;  // NOLINT
    return nullptr;
  }
};

template <class Visit>
Status EachGpu(Nvml& nvml, Visit visit) {
  const std::lock_guard guard(nvml.mutex);
  const auto failed = [&](const char* what, int code) {
    return Error{fmt::format("cannot {} (NVML: {})", what, nvml.ErrorText(code))};
  };
  const int begun = nvml.Init();
  if (begun == kDriverNotLoaded || begun == kLibraryNotFound) return Ok{};
  if (begun != kSuccess) return failed("ask the NVIDIA driver", begun);
  unsigned count = 0;
  int code = nvml.Count(&count);
  for (unsigned index = 0; code == kSuccess && index < count; ++index) {
    Device device = nullptr;
    code = nvml.Handle(index, &device);
    if (code == kSuccess) visit(static_cast<int>(index), device);
  }
  nvml.Shutdown();
  if (code != kSuccess) return failed("list the GPUs", code);
  return Ok{};
}

}  // namespace

Result<std::vector<GpuInfo>> FindGpus() {
  std::vector<GpuInfo> gpus;
  Nvml* const nvml = Nvml::Get();
  if (nvml == nullptr) return gpus;
  const Status asked = EachGpu(*nvml, [&](int index, Device device) {
    std::array<char, kNameBytes> name{};
    Memory memory{};
    GpuInfo gpu{.index = index};
    if (nvml->Name(device, name.data(), kNameBytes - 1) == kSuccess) gpu.name = name.data();
    if (nvml->MemoryOf(device, &memory) == kSuccess)
      gpu.memory_bytes = static_cast<std::int64_t>(memory.total);
    gpu.type = GpuTypeOf(gpu.name);
    gpus.push_back(std::move(gpu));
  });
  if (!asked) return asked.error();
  return gpus;
}

Result<std::vector<GpuUsage>> ReadGpuUsage() {
  std::vector<GpuUsage> usages;
  Nvml* const nvml = Nvml::Get();
  if (nvml == nullptr) return usages;
  const Status asked = EachGpu(*nvml, [&](int index, Device device) {
    Memory memory{};
    Utilization utilization{};
    GpuUsage usage{.index = index};
    if (nvml->UtilizationOf(device, &utilization) == kSuccess) usage.utilization = utilization.gpu / 100.0;
    if (nvml->MemoryOf(device, &memory) == kSuccess)
      usage.memory_used_bytes = static_cast<std::int64_t>(memory.used);
    usages.push_back(usage);
  });
  if (!asked) return asked.error();
  return usages;
}

std::string GpuTypeOf(std::string_view name) {
  constexpr std::size_t kLabelBytes = 63;
  std::string type;
  for (const char c : name) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool word = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    if (word) {
      type += lower;
    } else if (!type.empty() && type.back() != '-') {
      type += '-';
    }
    if (type.size() == kLabelBytes) break;
  }
  while (!type.empty() && type.back() == '-') type.pop_back();
  return type.empty() ? "gpu" : type;
}

}  // namespace voda
