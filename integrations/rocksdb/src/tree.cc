#include "tree.h"

#include <algorithm>

#include "codec.h"

namespace leyden_fs {
namespace {

enum Kind : uint8_t {
  kDirectory = 1,
  kFile = 2,
  kLink = 3,
  kUnlink = 4,
  kRename = 5,
  kExtents = 6,
  kLogZone = 7,
  kNextInode = 8,
  kCut = 9,
};

std::string Begin(Kind kind) {
  std::string out;
  PutU8(&out, kind);
  return out;
}

}  // namespace

namespace entry {

std::string Directory(const std::string& path) {
  std::string out = Begin(kDirectory);
  PutText(&out, path);
  return out;
}

std::string File(const std::string& path, uint64_t inode, FileClass file_class, uint64_t modified_s) {
  std::string out = Begin(kFile);
  PutText(&out, path);
  PutU64(&out, inode);
  PutU8(&out, static_cast<uint8_t>(file_class));
  PutU64(&out, modified_s);
  return out;
}

std::string Link(const std::string& path, uint64_t inode) {
  std::string out = Begin(kLink);
  PutText(&out, path);
  PutU64(&out, inode);
  return out;
}

std::string Unlink(const std::string& path) {
  std::string out = Begin(kUnlink);
  PutText(&out, path);
  return out;
}

std::string Rename(const std::string& from, const std::string& to) {
  std::string out = Begin(kRename);
  PutText(&out, from);
  PutText(&out, to);
  return out;
}

std::string Extents(uint64_t inode, uint64_t from, const std::vector<Extent>& extents) {
  std::string out = Begin(kExtents);
  PutU64(&out, inode);
  PutU64(&out, from);
  uint32_t count = 0;
  std::string list;
  for (const Extent& e : extents) {
    if (e.end() <= from) continue;
    const uint64_t skip = e.file_offset < from ? from - e.file_offset : 0;
    PutU64(&list, e.device_offset + skip);
    PutU64(&list, e.length - skip);
    count++;
  }
  PutU32(&out, count);
  return out + list;
}

std::string Cut(uint64_t inode, uint64_t sequence, uint64_t size) {
  std::string out = Begin(kCut);
  PutU64(&out, inode);
  PutU64(&out, sequence);
  PutU64(&out, size);
  return out;
}

std::string LogZone(uint32_t zone, uint32_t salt) {
  std::string out = Begin(kLogZone);
  PutU32(&out, zone);
  PutU32(&out, salt);
  return out;
}

}  // namespace entry

std::string NormalPath(const std::string& path) {
  std::string out;
  size_t at = 0;
  while (at < path.size()) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    if (part == "..") {
      out.erase(std::min(out.rfind('/'), out.size()));
    } else if (!part.empty() && part != ".") {
      out += "/" + part;
    }
    at = end + 1;
  }
  return out.empty() ? "/" : out;
}

std::string ParentPath(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

Tree::Tree(uint64_t zone_bytes) : zone_bytes_(zone_bytes) { names_["/"] = nullptr; }

IOStatus Tree::Apply(const std::string& entries) {
  Decoder in(entries.data(), entries.size());
  while (!in.empty()) {
    if (!ApplyOne(&in)) return IOStatus::Corruption("a metadata entry does not fit what is there");
  }
  return in.ok() ? IOStatus::OK() : IOStatus::Corruption("a metadata entry ends early");
}

bool Tree::ApplyOne(Decoder* in) {
  const uint8_t kind = in->U8();
  switch (kind) {
    case kDirectory: {
      const std::string path = in->Text();
      return in->ok() && names_.emplace(path, nullptr).second;
    }
    case kFile: {
      const std::string path = in->Text();
      const uint64_t number = in->U64();
      const uint8_t c = in->U8();
      const uint64_t modified_s = in->U64();
      if (!in->ok() || c < 1 || c > 3 || inodes_.count(number) != 0 || IsDirectory(path)) return false;
      auto inode = std::make_shared<Inode>(number, static_cast<FileClass>(c), zone_bytes_);
      inode->modified_s = modified_s;
      inode->links = 1;
      Drop(path);
      names_[path] = inode;
      inodes_[number] = inode;
      next_inode_ = std::max(next_inode_, number + 1);
      return true;
    }
    case kLink: {
      const std::string path = in->Text();
      const InodePtr inode = FindInode(in->U64());
      if (!in->ok() || inode == nullptr || names_.count(path) != 0) return false;
      names_[path] = inode;
      inode->links++;
      return true;
    }
    case kUnlink: {
      const std::string path = in->Text();
      if (!in->ok() || path == "/" || names_.count(path) == 0) return false;
      if (IsDirectory(path) && !Children(path).empty()) return false;
      Drop(path);
      return true;
    }
    case kRename: {
      const std::string from = in->Text();
      const std::string to = in->Text();
      return in->ok() && RenameAll(from, to);
    }
    case kExtents: {
      const InodePtr inode = FindInode(in->U64());
      const uint64_t from = in->U64();
      const uint32_t count = in->U32();
      if (!in->ok() || inode == nullptr) return false;
      std::lock_guard<std::mutex> lock(inode->mu);
      ExtentList list = inode->extents;
      list.Truncate(from);
      if (list.size() != from) return false;
      for (uint32_t i = 0; i < count && in->ok(); i++) {
        const uint64_t device_offset = in->U64();
        list.Append(device_offset, in->U64());
      }
      inode->recorded_size = list.size();
      // In use the file may have grown since: what it is made of is known better there.
      if (inode->handles == 0) inode->extents = std::move(list);
      return in->ok();
    }
    case kLogZone: {
      const uint32_t zone = in->U32();
      const uint32_t salt = in->U32();
      if (salt == 0) {
        log_zones_.erase(zone);
      } else {
        log_zones_[zone] = salt;
      }
      return in->ok();
    }
    case kCut: {
      const InodePtr inode = FindInode(in->U64());
      const uint64_t sequence = in->U64();
      const uint64_t size = in->U64();
      if (!in->ok() || inode == nullptr) return false;
      inode->cuts.emplace_back(sequence, size);
      return true;
    }
    case kNextInode:
      next_inode_ = std::max(next_inode_, in->U64());
      return in->ok();
    default: return false;
  }
}

void Tree::Drop(const std::string& path) {
  auto found = names_.find(path);
  if (found == names_.end()) return;
  const InodePtr inode = found->second;
  names_.erase(found);
  if (inode == nullptr || --inode->links > 0) return;
  inodes_.erase(inode->number);
  unlinked_.push_back(inode);
}

bool Tree::RenameAll(const std::string& from, const std::string& to) {
  if (names_.count(from) == 0 || from == "/" || IsDirectory(to)) return false;
  if (from == to) return true;
  if (!IsDirectory(from)) {
    const InodePtr inode = names_[from];
    inode->links++;  // so that it outlives a target that is the same file
    Drop(to);
    names_.erase(from);
    names_[to] = inode;
    inode->links--;
    return true;
  }
  if (names_.count(to) != 0 || to.compare(0, from.size() + 1, from + "/") == 0) return false;
  std::vector<std::pair<std::string, InodePtr>> moved;
  for (auto it = names_.lower_bound(from); it != names_.end();) {
    const std::string& path = it->first;
    if (path == from || path.compare(0, from.size() + 1, from + "/") == 0) {
      moved.emplace_back(to + path.substr(from.size()), it->second);
      it = names_.erase(it);
    } else if (path.compare(0, from.size(), from) == 0) {
      ++it;
    } else {
      break;
    }
  }
  for (auto& m : moved) names_[m.first] = m.second;
  return true;
}

std::vector<InodePtr> Tree::TakeUnlinked() {
  std::vector<InodePtr> taken;
  taken.swap(unlinked_);
  return taken;
}

std::vector<std::string> Tree::Snapshot(size_t piece_bytes) const {
  std::vector<std::string> pieces(1);
  auto add = [&](const std::string& e) {
    if (!pieces.back().empty() && pieces.back().size() + e.size() > piece_bytes) pieces.emplace_back();
    pieces.back() += e;
  };
  std::string next = Begin(kNextInode);
  PutU64(&next, next_inode_);
  add(next);
  for (const auto& zone : log_zones_) add(entry::LogZone(zone.first, zone.second));
  std::map<uint64_t, bool> seen;
  for (const auto& name : names_) {
    if (name.first == "/") continue;
    const InodePtr& inode = name.second;
    if (inode == nullptr) {
      add(entry::Directory(name.first));
    } else if (seen[inode->number]) {
      add(entry::Link(name.first, inode->number));
    } else {
      seen[inode->number] = true;
      add(entry::File(name.first, inode->number, inode->file_class, inode->modified_s));
      for (const auto& cut : inode->cuts) add(entry::Cut(inode->number, cut.first, cut.second));
      if (inode->file_class != FileClass::kPlain || inode->recorded_size == 0) continue;
      std::lock_guard<std::mutex> lock(inode->mu);
      ExtentList recorded = inode->extents;
      recorded.Truncate(inode->recorded_size);
      add(entry::Extents(inode->number, 0, recorded.all()));
    }
  }
  return pieces;
}

bool Tree::IsDirectory(const std::string& path) const {
  auto found = names_.find(path);
  return found != names_.end() && found->second == nullptr;
}

InodePtr Tree::Find(const std::string& path) const {
  auto found = names_.find(path);
  return found == names_.end() ? nullptr : found->second;
}

std::vector<std::string> Tree::Children(const std::string& directory) const {
  const std::string prefix = directory == "/" ? "/" : directory + "/";
  std::vector<std::string> children;
  for (auto it = names_.lower_bound(prefix); it != names_.end(); ++it) {
    if (it->first.compare(0, prefix.size(), prefix) != 0) break;
    const std::string rest = it->first.substr(prefix.size());
    if (!rest.empty() && rest.find('/') == std::string::npos) children.push_back(rest);
  }
  return children;
}

std::vector<InodePtr> Tree::Files() const {
  std::vector<InodePtr> files;
  for (const auto& i : inodes_) files.push_back(i.second);
  return files;
}

InodePtr Tree::FindInode(uint64_t number) const {
  auto found = inodes_.find(number);
  return found == inodes_.end() ? nullptr : found->second;
}

}  // namespace leyden_fs
