# How the packages are made; included by the Makefile. What is in them is what `make install` installs.

VERSION := $(shell sed --quiet 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
PACKAGES = target/packages
STAGE = target/stage
CARGO_DEB_VERSION = 3.8.0
CARGO_DEB = target/tools/deb/bin/cargo-deb

$(CARGO_DEB):
	$(CARGO) install --quiet --locked --version $(CARGO_DEB_VERSION) --root target/tools/deb cargo-deb

.PHONY: deb
deb: parts $(CARGO_DEB) ## the Debian packages
	rm --recursive --force $(STAGE) && mkdir --parents $(PACKAGES) $(STAGE)
	umask 022 && $(MAKE) --no-print-directory install DESTDIR=$(STAGE)/tandem
	umask 022 && $(MAKE) --no-print-directory install-dropin DESTDIR=$(STAGE)/dropin
	# Debian's zsh looks for completions of packages elsewhere.
	mv $(STAGE)/tandem/usr/share/zsh/site-functions $(STAGE)/tandem/usr/share/zsh/vendor-completions
	rm --force $(PACKAGES)/*.deb
	set -e; for variant in common pacemaker fencing dropin; do \
		$(CARGO_DEB) --no-build --no-strip --variant $$variant --output $(PACKAGES)/; \
	done
	# cargo-deb packs files alone, and this directory is empty.
	dpkg-deb --raw-extract $(PACKAGES)/tandem-common_*.deb $(STAGE)/deb
	install -d --mode=700 $(STAGE)/deb/etc $(STAGE)/deb/etc/tandem && chmod 755 $(STAGE)/deb/etc
	deb=$$(echo $(PACKAGES)/tandem-common_*.deb) && dpkg-deb --root-owner-group --build $(STAGE)/deb "$$deb"

.PHONY: dist
dist: ## the source archive, of what is committed
	mkdir --parents $(PACKAGES)
	git archive --prefix=tandem-$(VERSION)/ --output=$(PACKAGES)/tandem-$(VERSION).tar.gz HEAD

.PHONY: vendor
vendor: dist ## the sources of all dependencies, for building where no registry is reached
	rm --recursive --force target/vendor && mkdir --parents target/vendor
	cd target/vendor && $(CARGO) vendor --locked --quiet --manifest-path ../../Cargo.toml vendor > cargo-config.toml
	tar --create --gzip --file $(PACKAGES)/tandem-$(VERSION)-vendor.tar.gz --directory target/vendor \
		--transform 's,^cargo-config.toml,vendor/cargo-config.toml,' vendor cargo-config.toml

# Where rpm is not this machine's own package manager, its database does not know what is installed.
RPM_FLAGS = $(shell rpm --query --quiet rpm 2> /dev/null || echo --nodeps)
RPMBUILD = rpmbuild -bb $(RPM_FLAGS) --define '_topdir $(CURDIR)/target/rpm' --define '_sourcedir $(CURDIR)/$(PACKAGES)' \
	--define '_rpmdir $(CURDIR)/$(PACKAGES)' --define '_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm'

# Anything, to put the program of the Debian packages into the RPMs, too. A build from their own sources takes minutes.
RPM_BUILT ?=

.PHONY: rpm
rpm: dist ## the RPMs
	rm --force $(PACKAGES)/*.rpm
	CARGO_TARGET_DIR=$(CURDIR)/target $(RPMBUILD) $(if $(RPM_BUILT),--with built) rpm/tandem.spec

.PHONY: rpm-vendored
rpm-vendored: vendor ## the RPMs, from vendored sources alone, as a build service without a network makes them
	rm --force $(PACKAGES)/*.rpm
	CARGO_NET_OFFLINE=true $(RPMBUILD) --with vendor rpm/tandem.spec
